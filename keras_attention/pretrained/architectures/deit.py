"""DeiT (Touvron et al., 2021): ViT with a distillation token, and in some files its own head."""

from keras_attention.pretrained.architectures import vit
from keras_attention.pretrained.table_entries import dense, joined, mean_of

MODEL_TYPES = ("deit",)
BASE = "deit."
IRRELEVANT = vit.IRRELEVANT
HEADS = {
    "ForImageClassification": "vision_transformer",
    "ForImageClassificationWithTeacher": "vision_transformer",
    "Model": "image_encoder",
}
IGNORED = (r".*pooler\..*", r"(deit\.)?embeddings\.mask_token")


def settings(config):
    return vit.settings(config) | {"num_registers": 1}


def head(config, builder, keywords, tensors):
    distilled = builder == "vision_transformer" and "distillation_classifier.weight" in tensors
    return {"pooling": "prefix" if distilled else "cls"}


def table(config, builder, keywords, tensors):
    entries = vit.list_encoder(BASE, keywords["num_layers"], tensors, vit.BLOCK)
    inside = entries["patches/prefix"].removesuffix("cls_token")
    entries["patches/prefix"] = joined([f"{inside}cls_token", f"{inside}distillation_token"])
    if keywords["pooling"] != "prefix":
        return entries | dense("logits", "classifier")
    return entries | join_heads("cls_classifier", "distillation_classifier")


def join_heads(*names):
    """Return {weight name: tensor names} for one linear head that replaces two.

    The mean of two linear heads equals one linear head that reads both tokens, concatenated.
    `names` are the names of the two heads in the file.
    """
    return {
        "logits/kernel": joined([f"{name}.weight" for name in names], 0.5),
        "logits/bias": mean_of(*[f"{name}.bias" for name in names]),
    }
