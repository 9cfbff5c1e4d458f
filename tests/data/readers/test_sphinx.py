"""Lists and features of Sphinx."""

import numpy as np
import pytest
import soundfile

import keras_attention as ka

random = np.random.default_rng(0)
CEPSTRA = random.normal(size=(9, 13)).astype("float32")


def write(path, cepstra=CEPSTRA, order=">"):
    path.parent.mkdir(parents=True, exist_ok=True)
    header = np.array([cepstra.size], f"{order}i4").tobytes()
    path.write_bytes(header + cepstra.astype(f"{order}f4").tobytes())
    return path


def by_definition(cepstra):
    """Compute `-cmn current -feat 1s_c_d_dd`, frame by frame."""
    x = cepstra - cepstra.mean(axis=0)

    def at(t):
        return x[min(max(t, 0), len(x) - 1)]

    rows = []
    for t in range(len(x)):
        second = (at(t + 3) - at(t - 1)) - (at(t + 1) - at(t - 3))
        rows.append([*at(t), *(at(t + 2) - at(t - 2)), *second])
    return np.array(rows)


@pytest.mark.parametrize("order", "><")
def test_features_with_their_differences(order, tmp_path):
    path = write(tmp_path / "a.mfc", order=order)
    features = ka.data.read_features(path)
    assert features.dtype == np.float32 and features.shape == (9, 39)
    np.testing.assert_allclose(features, by_definition(CEPSTRA), atol=1e-5)
    plain = ka.data.read_features(path, differences=False)
    np.testing.assert_allclose(plain, features[:, :13], atol=1e-6)


def write_lists(folder, ids=("s/f/a-1", "s/g/b-2"), lines=("<s> YES GO </s> (a-1)", "NO (b-2)")):
    (folder / "etc").mkdir(parents=True)
    path = folder / "etc" / "an4_train.fileids"
    path.write_text("".join(f"{name}\n" for name in ids))
    path.with_suffix(".transcription").write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_list_names_features_and_speakers(tmp_path):
    path = write_lists(tmp_path)
    write(tmp_path / "feat/s/f/a-1.mfc"), write(tmp_path / "feat/s/g/b-2.mfc", CEPSTRA[:5])
    data = ka.data.from_recordings(test=path)
    assert data.about["sampling_rate"] is None
    assert [(r.text, r.speaker) for r in data.test] == [("YES GO", "f"), ("NO", "g")]
    assert [r.sound.shape for r in data.test] == [(9, 39), (5, 39)]
    preprocessor = ka.data.SpeechPreprocessor.build(["YES GO"], num_features=39)
    inputs = preprocessor([str(tmp_path / "feat/s/f/a-1.mfc")])
    np.testing.assert_array_equal(inputs["features"][0], data.test[0].sound)
    with pytest.raises(ValueError, match="said.wav: expected features"):
        preprocessor(["said.wav"])


def test_a_list_names_sounds(tmp_path):
    path = write_lists(tmp_path, ids=["s/f/a-1"], lines=["YES (a-1)"])
    (tmp_path / "wav/s/f").mkdir(parents=True)
    soundfile.write(tmp_path / "wav/s/f/a-1.wav", np.zeros(900), 16000)
    data = ka.data.from_recordings(test=path)
    assert data.about["sampling_rate"] == 16000 and data.test[0].sound.shape == (900,)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(lines=["YES (a-1)"]), "has 2 lines, and .*transcription 1: expected as many"),
        (dict(lines=["YES (a-1)", "NO (c-3)"]), r"transcription, line 2: .*words and \(b-2\)"),
        (dict(), "fileids, line 2: there is neither .*b-2.mfc nor"),
    ],
)
def test_mismatched_lists_are_errors_with_the_line(change, message, tmp_path):
    write(tmp_path / "feat/s/f/a-1.mfc")
    with pytest.raises(ValueError, match=message):
        ka.data.from_recordings(test=write_lists(tmp_path, **change))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "not a file of cepstra"),
        (b"\0\0\0\x0d" + bytes(8), "not a file of cepstra"),
        (b"\0\0\0\x02" + bytes(8), "has 2 numbers: expected finite numbers, 13 for each frame"),
        (b"\0\0\0\x0d" + b"\x7f\xc0\0\0" * 13, "expected finite numbers"),
    ],
)
def test_files_without_cepstra_are_errors(content, message, tmp_path):
    (tmp_path / "a.mfc").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        ka.data.read_features(tmp_path / "a.mfc")
    with pytest.raises(ValueError, match="The file .*b.mfc is missing"):
        ka.data.read_features(tmp_path / "b.mfc")
