"""All file readers make the same parts: a tenth of train becomes dev, and test stays empty."""

import json

import keras
import numpy as np
import pytest
import soundfile

import keras_attention as ka

WORD = "1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
QUESTION = {"question": "Who?", "context": "Ada sat.", "answers": {"text": [], "answer_start": []}}
FILES = {
    "texts": (ka.data.from_text_files, "a.csv", "text,label\n" + 10 * "x,a\ny,b\n"),
    "labels": (ka.data.from_multi_label_files, "a.csv", "text,labels\n" + 20 * "x,a\n"),
    "pairs": (ka.data.from_pair_files, "a.csv", "source,target\n" + 20 * "x,y\n"),
    "conll": (ka.data.from_conll, "a.conll", 20 * "a\tX\n\n"),
    "conllu": (ka.data.from_conllu, "a.conllu", 20 * WORD),
    "heads": (ka.data.from_conllu_trees, "a.conllu", 20 * WORD),
    "brackets": (ka.data.from_bracketed_files, "a.mrg", 20 * "(S (NN cat))\n"),
    "questions": (
        ka.data.from_question_files,
        "a.jsonl",
        "".join(json.dumps(QUESTION | {"context": f"Ada sat {k}."}) + "\n" for k in range(20)),
    ),
    "dialogues": (ka.data.from_dialogue_files, "a.jsonl", 20 * '{"turns": ["Hi!", "Hello."]}\n'),
    "captions": (ka.data.from_captions, "a.csv", "image,text\n" + 20 * "a.png,x\n"),
    "recordings": (ka.data.from_recordings, "a.csv", "path,text\n" + 20 * "a.wav,x\n"),
    "pictures": (ka.data.from_image_folder, None, None),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", FILES)
def test_dev_is_split_off_train_but_test_is_not(kind, tmp_path):
    read, name, content = FILES[kind]
    if name is None:
        path = tmp_path
        for k in range(20):
            save(tmp_path / "ab"[k % 2] / f"{k}.png")
    else:
        path = tmp_path / name
        path.write_text(content)
        soundfile.write(tmp_path / "a.wav", np.zeros(800), 8000)
        if kind == "captions":
            for k in range(20):
                save(tmp_path / f"{k}.png")
            path.write_text("image,text\n" + "".join(f"{k}.png,x\n" for k in range(20)))

    def count(**parts):
        data = read(**parts)
        return [len(getattr(p, "labels", p)) for p in (data.train, data.dev, data.test)]

    assert count(train=path) == [18, 2, 0]
    assert count(train=path, dev_fraction=0) == [20, 0, 0]
    assert count(train=path, test=path) == [18, 2, 20]
    assert count(train=path, dev=path) == [20, 20, 0]


def save(path):
    path.parent.mkdir(exist_ok=True)
    keras.utils.save_img(path, np.full((4, 4, 3), 9), scale=False)
