"""All broken examples of files are named in one error, or skipped with a warning."""

import json

import keras
import numpy as np
import pytest
import soundfile

import keras_attention as ka
from keras_attention.data.problems import LONGEST, Problems, SkippedWarning

WORD = "{}\t{}\t_\tNOUN\t_\t_\t{}\troot\t_\t_\n"
QUESTION = {"question": "Who?", "context": "Ada sat.", "answers": {"text": [], "answer_start": []}}
BROKEN = QUESTION | {"question": " "}
TALK, SHORT = {"turns": ["Hi!", "Hello."]}, {"turns": ["Hi!"]}


def lines(*objects):
    return "".join(json.dumps(one) + "\n" for one in objects)


READERS = {
    "text": (ka.data.from_text_files, "a.csv", "text,label\nx,a\n,b\ny,\nz,b\n"),
    "text lines": (
        ka.data.from_text_files,
        "a.jsonl",
        lines({"text": "x", "label": "a"}, {"text": ""}, [], {"text": "y", "label": "b"}),
    ),
    "labels": (ka.data.from_multi_label_files, "a.csv", "text,labels\nx,a\n,a\n1,2,3\ny,b\n"),
    "pairs": (ka.data.from_pair_files, "a.tsv", "source\ttarget\na\tb\n\tc\nd\t\ne\tf\n"),
    "matches": (ka.data.from_matching_files, "a.tsv", "text\tmatch\na\tb\n\tc\nd\t\ne\tf\n"),
    "conll": (ka.data.from_conll, "a.conll", "a\tX\n\nb\n\nc\tX\nd\tX\ty\n\ne\tX\n"),
    "conllu": (
        ka.data.from_conllu,
        "a.conllu",
        f"{WORD.format(1, 'a', 0)}\n{WORD.format(2, 'b', 0)}\nx\n\n{WORD.format(1, 'c', 0)}",
    ),
    "trees": (
        ka.data.from_conllu_trees,
        "a.conllu",
        f"{WORD.format(1, 'a', 0)}\n{WORD.format(1, 'b', 1)}\nx\n\n{WORD.format(1, 'c', 0)}",
    ),
    "questions": (
        ka.data.from_question_files,
        "a.jsonl",
        lines(QUESTION, BROKEN, BROKEN, QUESTION),
    ),
    "dialogues": (ka.data.from_dialogue_files, "a.jsonl", lines(TALK, SHORT, {}, TALK)),
}


@pytest.mark.parametrize("kind", READERS)
def test_readers_of_text_name_all_broken_examples_or_skip_them(kind, tmp_path):
    read, name, content = READERS[kind]
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match="2 examples cannot be read:\n") as caught:
        read(test=tmp_path / name)
    first, *named, last = str(caught.value).splitlines()
    assert len(named) == 2 and all(str(tmp_path / name) in line for line in named)
    assert last == "Mend or remove them. To leave them out, give on_error='skip'."
    with pytest.warns(SkippedWarning, match="^skipped examples: 2\n"):
        data = read(test=tmp_path / name, on_error="skip")
    assert len(data.test) == 2


def test_a_line_of_aligned_files_is_skipped_with_its_partner(tmp_path):
    for name, text in (("de", "a\n\nc\n"), ("en", "x\ny\nz\n")):
        (tmp_path / name).write_text(text)
    paths = tmp_path / "de", tmp_path / "en"
    with pytest.warns(SkippedWarning, match="de:2: the line is empty, its partner is 'y'"):
        assert ka.data.from_pair_files(test=paths, on_error="skip").test == [("a", "x"), ("c", "z")]


def test_problems_of_all_parts_are_in_one_error(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"{part}.csv").write_text("text,label\nx,a\n,a\n")
    with pytest.raises(ValueError, match=r"2 examples [^$]*train.csv:3:[^$]*test.csv:3:"):
        ka.data.from_text_files(tmp_path / "train.csv", test=tmp_path / "test.csv")


def test_an_error_shows_20_problems_and_counts_the_remaining():
    problems = Problems()
    for k in range(1025):
        with problems.note():
            raise ValueError(f"{k} " + "x" * 2 * LONGEST)
    with pytest.raises(ValueError) as caught:
        problems.report()
    named = str(caught.value).splitlines()
    assert named[0] == "1,025 examples cannot be read:" and len(named) == 23
    assert named[20].startswith("19 xx") and len(named[20]) < LONGEST + 5
    assert named[21] == "And 1,005 more."
    with pytest.raises(ValueError, match="on_error='ignore': expected 'raise' or 'skip'"):
        Problems("ignore")


def save(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    keras.utils.save_img(path, np.full((6, 6, 3), 9), scale=False)
    return path


@pytest.mark.tensorflow
def test_all_damaged_pictures_of_a_folder(tmp_path):
    for name in ("a/0.png", "a/1.png", "a/2.png", "b/0.png", "b/1.png", "b/2.png"):
        save(tmp_path / name)
    for name in ("a/0.png", "b/1.png"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:30])
    (tmp_path / "b" / "c.tiff").write_bytes(b"II*")
    with pytest.raises(ValueError, match=r"3 examples[^$]*c.tiff[^$]*a/0.png[^$]*b/1.png"):
        ka.data.from_image_folder(tmp_path)
    with pytest.warns(SkippedWarning, match="^skipped examples: 3\n"):
        data = ka.data.from_image_folder(tmp_path, dev_fraction=0, on_error="skip")
    assert data.train.labels.tolist() == [0, 0, 1, 1] and data.train.pixels.shape == (4, 6, 6, 1)


@pytest.mark.tensorflow
def test_damaged_pictures_and_broken_boxes_of_coco(tmp_path):
    files = [save(tmp_path / f"{k}.png").name for k in range(5)]
    (tmp_path / "1.png").write_bytes(b"")
    (tmp_path / "2.png").unlink()
    images = [{"id": k, "file_name": name, "width": 6, "height": 6} for k, name in enumerate(files)]
    boxes = [{"image_id": k, "category_id": 1, "bbox": [0, 0, 3, 3]} for k in range(5)]
    boxes.append({"image_id": 3, "category_id": 1, "bbox": [0, 0, 3]})  # its picture is left out
    boxes.append({"image_id": 77, "category_id": 1, "bbox": [0, 0, 3, 3]})
    content = {"images": images, "categories": [{"id": 1, "name": "x"}], "annotations": boxes}
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="^4 examples cannot be read:\n"):
        ka.data.from_coco(test=tmp_path)
    with pytest.warns(SkippedWarning, match="^skipped examples: 4\n"):
        data = ka.data.from_coco(test=tmp_path, on_error="skip")
    assert [one.name for one in data.test] == [0, 4]
    table = tmp_path / "captions.csv"
    table.write_text("image,text\n0.png,a\n0.png,\n1.png,b\n2.png,c\n4.png,d\n")
    with pytest.warns(SkippedWarning, match="^skipped examples: 3\n"):
        captions = ka.data.from_captions(test=table, on_error="skip")
    assert [one.texts for one in captions.test] == [("a",), ("d",)]


@pytest.mark.tensorflow
def test_damaged_files_of_voc(tmp_path):
    box = "<xmin>0</xmin><ymin>0</ymin><xmax>3</xmax><ymax>3</ymax>"
    size = "<size><width>6</width><height>6</height></size>"
    annotated = f"<object><name>x</name><bndbox>{box}</bndbox></object>"
    for k in range(4):
        save(tmp_path / f"{k}.png")
        (tmp_path / f"{k}.xml").write_text(f"<annotation>{size}{annotated}</annotation>")
    (tmp_path / "1.xml").write_text("<annotation>")
    (tmp_path / "2.png").write_bytes(b"")
    with pytest.warns(SkippedWarning, match="^skipped examples: 2\n"):
        data = ka.data.from_voc(test=tmp_path, on_error="skip")
    assert [one.name for one in data.test] == ["0", "3"]


def test_damaged_recordings(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 8000)
    (tmp_path / "b.wav").write_bytes(b"RIFF")
    table = tmp_path / "a.csv"
    table.write_text("path,text\na.wav,one\nb.wav,two\nc.wav,three\na.wav,four\n")
    with pytest.raises(ValueError, match=r"2 examples [^$]*b.wav is not a [^$]*c.wav is missing"):
        ka.data.from_recordings(test=table)
    with pytest.warns(SkippedWarning, match="^skipped examples: 2\n"):
        data = ka.data.from_recordings(test=table, on_error="skip")
    assert [one.text for one in data.test] == ["one", "four"]
