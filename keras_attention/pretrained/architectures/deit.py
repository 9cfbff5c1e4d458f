"""DeiT (Touvron et al., 2021): a vision transformer with a distillation token, or its head, too."""

from keras_attention.pretrained.architectures import vit
from keras_attention.pretrained.weights import dense, joined, mean_of

MODEL_TYPES = ("deit",)
BASE = "deit."  # what names begin with below a head
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
    """Both tokens are read where there is a head for each."""
    both = builder == "vision_transformer" and "distillation_classifier.weight" in tensors
    return {"pooling": "prefix" if both else "cls"}


def table(config, builder, keywords, tensors):
    found = vit.list_encoder(BASE, keywords["num_layers"], tensors)
    inside = found["patches/prefix"].removesuffix("cls_token")
    found["patches/prefix"] = joined([f"{inside}cls_token", f"{inside}distillation_token"])
    if keywords["pooling"] != "prefix":
        return found | dense("logits", "classifier")
    return found | join_heads("cls_classifier", "distillation_classifier")


def join_heads(*names):
    """One head in the place of two: the mean of linear maps of two vectors is one of both."""
    return {
        "logits/kernel": joined([f"{name}.weight" for name in names], 0.5),
        "logits/bias": mean_of(*[f"{name}.bias" for name in names]),
    }
