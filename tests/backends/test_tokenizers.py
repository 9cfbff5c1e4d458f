"""Tokenizers of every family, made by transformers: ours of the same folder give the same ids."""

import io
import itertools
import json
import random
import shutil

import pytest
import sentencepiece
import tokenizers
import transformers

import keras_attention as ka
from tests.data.tokenizers.test_pretrained import LINES, LLAMA_3, read_natural_lines
from tests.pretrained.make_checkpoints import FOLDER

SPECIAL = ("<extra_id_3>", ">>fra<<", "<unk>", "</s>", "[MASK]", "<mask>")


def train_anew(kind, **options):
    """Write the files of a tokenizer of transformers that learned its pieces from texts."""

    def write(folder, texts):
        made = getattr(transformers, kind)(**options)
        made.train_new_from_iterator(texts, 600, show_progress=False).save_pretrained(folder)

    return write


def train_sentence_piece(texts, **options):
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=made,
        minloglevel=2,
        hard_vocab_limit=False,
        **options,
    )
    return made.getvalue()


def of_sentence_piece(name, kind, convert=True, **options):
    """Writes a SentencePiece model, and the `tokenizer.json` that transformers makes of it."""

    def write(folder, texts):
        (folder / name).write_bytes(train_sentence_piece(texts, **options))
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))
        if convert:
            transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)

    return write


def write_marian(folder, texts):
    """Two SentencePiece models, with a table of ids for both."""
    names = {"</s>": 0, "<unk>": 1, ">>fra<<": 2}
    for name, part in (("source", texts[::2]), ("target", texts[1::2])):
        content = train_sentence_piece(part, vocab_size=600)
        (folder / f"{name}.spm").write_bytes(content)
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        for i in range(3, processor.vocab_size()):
            names.setdefault(processor.id_to_piece(i), len(names))
    names["<pad>"] = len(names)
    (folder / "vocab.json").write_text(json.dumps(names))
    config = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "fr"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def train_bytes(texts, special, split=None, **options):
    """Byte-level BPE, as the library itself has it."""
    rules, kinds = tokenizers.Tokenizer(tokenizers.models.BPE(**options)), tokenizers.pre_tokenizers
    rules.pre_tokenizer = kinds.ByteLevel(add_prefix_space=False, use_regex=split is None)
    if split:
        first = kinds.Split(tokenizers.Regex(split), "isolated")
        rules.pre_tokenizer = kinds.Sequence([first, rules.pre_tokenizer])
    rules.decoder = tokenizers.decoders.ByteLevel()
    alphabet = kinds.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, show_progress=False
    )
    rules.train_from_iterator(texts, trainer)
    rules.add_special_tokens(special)
    return rules


def frame(rules, single, pair):
    names = {name for name in f"{single} {pair}".replace(":1", "").split() if name[0] != "$"}
    special = [(name, rules.token_to_id(name)) for name in names]
    return tokenizers.processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=special
    )


def write_llama_3(folder, texts):
    begin, end = "<|begin_of_text|>", "<|end_of_text|>"
    rules = train_bytes(texts, [begin, end], split=LLAMA_3, ignore_merges=True)
    processors = tokenizers.processors
    framed = frame(rules, f"{begin} $A", f"{begin} $A {begin}:1 $B:1")
    rules.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), framed])
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=rules, bos_token=begin, eos_token=end
    )
    made.save_pretrained(folder)


def write_modern_bert(folder, texts):
    """Compare GPT-NeoX's: runs of spaces are tokens, but not special ones."""
    mask = tokenizers.AddedToken("[MASK]", lstrip=True, special=True)
    rules = train_bytes(texts, ["[CLS]", "[SEP]", "[PAD]", mask])
    rules.normalizer = tokenizers.normalizers.NFC()
    rules.add_tokens([tokenizers.AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    rules.post_processor = frame(rules, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=rules, mask_token="[MASK]", pad_token="[PAD]"
    )
    made.save_pretrained(folder)


BYTES = dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
             remove_extra_whitespaces=False, character_coverage=0.999, vocab_size=900)  # fmt: skip
T5 = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1, vocab_size=600)
GEMMA = dict(pad_id=0, eos_id=1, bos_id=2, unk_id=3, user_defined_symbols=["<mask>"])
ALBERT = dict(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, vocab_size=600,
              user_defined_symbols=["[CLS]", "[SEP]", "[MASK]"])  # fmt: skip

# name: (committed checkpoint of that architecture, what writes the files of its tokenizer)
FAMILIES = {
    "BERT": ("bert", train_anew("BertTokenizer")),
    "BERT, capitals": ("bert", train_anew("BertTokenizer", do_lower_case=False)),
    "DistilBERT": ("distilbert-masked", train_anew("DistilBertTokenizer")),
    "ELECTRA": ("electra-masked", train_anew("ElectraTokenizer")),
    "RoBERTa": ("roberta-masked", train_anew("RobertaTokenizer")),
    "XLM-R": ("roberta-masked", train_anew("XLMRobertaTokenizer")),
    "CamemBERT": ("roberta-masked", train_anew("CamembertTokenizer")),
    "BART": ("bart", train_anew("BartTokenizer")),
    "GPT-2": ("gpt2", train_anew("GPT2Tokenizer")),
    "Qwen": ("qwen2", train_anew("Qwen2Tokenizer")),
    "CLIP": ("clip-texts", train_anew("CLIPTokenizer")),
    "Llama 3": ("llama-3", write_llama_3),
    "ModernBERT": ("roberta-masked", write_modern_bert),
    "T5": ("t5", of_sentence_piece("spiece.model", "T5Tokenizer", **T5)),
    "T5, spiece.model alone": (
        "t5", of_sentence_piece("spiece.model", "T5Tokenizer", convert=False, **T5)
    ),
    "ALBERT": ("albert-masked", of_sentence_piece("spiece.model", "AlbertTokenizer", **ALBERT)),
    "Marian": ("marian", write_marian),
    "Llama 2": ("llama-2", of_sentence_piece("tokenizer.model", "LlamaTokenizer", **BYTES)),
    "Gemma": (
        "gemma",
        of_sentence_piece("tokenizer.model", "GemmaTokenizer", add_dummy_prefix=False,
                          **BYTES, **GEMMA),
    ),
}  # fmt: skip


def with_special_tokens(lines, names):
    """Lines with special tokens written in them, beside spaces and inside of words."""
    draw = random.Random(0)
    for line in lines:
        words = line.split(" ")
        for _ in range(3):
            token = draw.choice(["", " "]) + draw.choice(names)
            words.insert(draw.randrange(len(words) + 1), token)
        yield draw.choice(["", " "]).join(words)


def list_differences(name, folder, texts, lines):
    """Return the lines whose ids differ from those of transformers."""
    checkpoint, write = FAMILIES[name]
    shutil.copytree(FOLDER / checkpoint, folder)
    write(folder, texts)
    ours = ka.pretrained.tokenizer(folder, max_length=100_000)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    lines = [*lines, *with_special_tokens(lines[-200:], [*theirs.all_special_tokens, *SPECIAL])]
    expected = theirs(lines, verbose=False)["input_ids"]
    rows = zip(lines, ours.encode(lines), expected, strict=True)
    return [(line, ids, their_ids) for line, ids, their_ids in rows if ids != their_ids]


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@pytest.mark.parametrize("name", FAMILIES)
def test_ids_are_those_of_transformers(name, tmp_path):
    texts = [*LINES[:8], *LINES[-2:]] * 3
    assert not list_differences(name, tmp_path / "checkpoint", texts, LINES)


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@pytest.mark.parametrize("name", FAMILIES)
def test_ids_of_five_thousand_natural_lines(name, data_root, tmp_path):
    lines = read_natural_lines(data_root)
    step = len(lines) // 5000
    lines = list(itertools.islice(lines, 0, None, step))[:5000]
    assert len(lines) == 5000
    assert not list_differences(name, tmp_path / "checkpoint", lines[::10], lines)
