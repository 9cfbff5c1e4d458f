from keras_attention.export.checks.formatting import format_shape, format_signatures, format_size
from keras_attention.export.checks.report import Signature, Tensor


def test_sizes_are_written_as_people_read_them():
    assert [format_size(n) for n in (999, 1_234, 5_600_000, 4_370_000_000)] == [
        "999 bytes", "1.2 kB", "5.6 MB", "4.4 GB"
    ]  # fmt: skip
    assert [format_shape(axes) for axes in ((), (None,), (1, None))] == ["()", "(?,)", "(1, ?)"]


def test_tensors_of_like_layers_are_one_line():
    cache = [Tensor(f"block_{k}_key", (None, 2), "float32") for k in range(12)]
    several = [
        Tensor("ids", (1,), "int32"),
        *cache,
        Tensor("b_1", (), "bool"),
        Tensor("b_2", (), "bool"),
    ]
    lines = format_signatures([Signature("step", tuple(several), ())]).splitlines()
    assert lines[2:] == [
        "  input  ids               int32    (1,)",
        "  input  block_*_key (12)  float32  (?, 2)",
        "  input  b_1               bool     ()",
        "  input  b_2               bool     ()",
    ]
