"""The picture that a model that writes leaves: what it looked at for each token it wrote."""

from keras_attention import generation, visualization
from keras_attention.cli import writing

PICTURED = range(12, 27)  # tokens of a source that is nice to look at
LATIN = "\u024f"  # the last letter that every font has


def picture(model, folder, pairs, preprocessor, manifest):
    """Draws the last cross-attention, written tokens against those of one source."""
    source = _nice([pair.source for pair in pairs], preprocessor)
    options = writing.options(manifest) | {"sampler": "greedy", "return_attention": True}
    del options["generate"]
    ids = preprocessor([source])
    result = generation.generate(model, ids, **options)
    path, weights = last_of_source(result.attention)
    written = result.ids[0]
    length = (
        1 + list(written).index(preprocessor.end_id) if preprocessor.end_id in written else None
    )
    visualization.attention_map(
        weights,
        preprocessor.target.pieces(written[:length]),
        preprocessor.source.pieces(ids[0]),
        title=f"{path}: what each token that was written looked at",
        path=folder / "attention.png",
    )
    return ["attention.png"]


def last_of_source(maps):
    """(path, weights) of the last layer that looks at the source: the only one, or the last of
    those called cross-attention.
    """
    crossing = [path for path in maps if "cross_attention" in path] or list(maps)
    return crossing[-1], maps[crossing[-1]]


def _nice(sources, preprocessor):
    """The first source of a good length in letters that every font has, or simply the first."""
    lengths = map(len, preprocessor.source_ids(sources))
    of_length = [s for s, n in zip(sources, lengths, strict=True) if n in PICTURED]
    return next((s for s in of_length if max(s) <= LATIN), sources[0])
