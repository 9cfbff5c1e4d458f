"""The report of a layout: its counts and its table."""

from keras_attention.distribution import LayoutReport, WeightLayout

KERNEL = WeightLayout("mlp/kernel", (8, 32), ("embed", "mlp"), ("data", "model"))
BIAS = WeightLayout("mlp/bias", (6,), ("mlp",), (None,), "mlp=6 is not a multiple of model=4")
NORM = WeightLayout("norm/gamma", (8,), None, (None,), "no axis that this mesh splits")


def test_the_report_counts_parameters():
    report = LayoutReport({"data": 2, "model": 4}, (KERNEL, BIAS, NORM))
    assert report.split == [KERNEL] and KERNEL.is_split and not BIAS.is_split
    assert report.size == 8 * 32 + 6 + 8
    assert report.size_on_a_device == 8 * 32 // 8 + 6 + 8


def test_the_table_has_a_line_for_each_weight():
    report = LayoutReport({"data": 2, "model": 4}, (KERNEL, BIAS, NORM))
    assert str(report).split("\n") == [
        "weight      shape  roles      split along  why not",
        "mlp/kernel  8 32   embed mlp  data model",
        "mlp/bias    6      mlp        -            mlp=6 is not a multiple of model=4",
        "norm/gamma  8                 -            no axis that this mesh splits",
        "1 of 3 weights are split over data=2, model=4. Each device holds 46 of 270 numbers.",
    ]
