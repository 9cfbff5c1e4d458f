"""Finding a data set in TensorFlow Datasets, preparing it, and naming its splits."""

import difflib

OFFICIAL = {"train": ("train",), "dev": ("validation", "dev", "val", "valid"), "test": ("test",)}


def find_tfds_builder(tfds, name, data_dir):
    """Return the TFDS builder of `name`, or a ValueError that says which names there are."""
    base, _, config = name.partition("/")
    base = base.partition(":")[0]
    try:
        configs = [c.name for c in tfds.builder_cls(base).BUILDER_CONFIGS]
    except ValueError as error:  # also TFDS's DatasetNotFoundError
        names = tfds.list_builders(with_community_datasets=False)
        close = ", ".join(difflib.get_close_matches(base, names, n=3))
        hint = f"Near it: {close}." if close else "See its catalogue for the names."
        raise ValueError(f"There is no data set {name!r} in TFDS. {hint}") from error
    if len(configs) > 1 and not config:
        # TFDS would take the first: Afrikaans, of all Universal Dependencies.
        raise ValueError(
            f"{name} is several data sets; choose one, such as {name}/{configs[0]}. "
            f"There are: {_few(configs)}."
        )
    try:
        return tfds.builder(name, data_dir=data_dir)
    except ValueError as error:
        close = difflib.get_close_matches(config.partition(":")[0], configs, n=5) or configs
        raise ValueError(
            f"TFDS cannot make {name!r}. Of {base} there are: {_few(close)}."
        ) from error


def _few(names, most=10):
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def prepare_builder(tfds, builder, name):
    """Return `builder` after its data has been fetched and prepared, unless it has been before."""
    try:
        builder.download_and_prepare()
    except (OSError, tfds.download.DownloadError) as error:
        raise ConnectionError(
            f"The data of {name} is not in {builder.data_dir} and could not be fetched: "
            f"{type(error).__name__}, {_first_line(error)}"
        ) from error
    except AssertionError as error:  # TFDS asks for files that only a person may fetch
        raise ValueError(f"TFDS cannot prepare {name}: {_first_line(error)}") from error
    return builder


def _first_line(error):
    return str(error).strip().split("\n")[0][:300]


def find_splits(builder, name, splits, required=("train", "test")):
    """{"train": ..., "dev": ..., "test": ...}, as TFDS spells them; None where there is none.

    Args:
        required: the parts that must be there. If that is test alone, dev may stand for it.
    """
    available = builder.info.splits
    if splits is None:
        official = {
            part: next((n for n in names if n in available), None)
            for part, names in OFFICIAL.items()
        }
        if required == ("test",) and official["test"] is None:
            official |= {"test": official["dev"], "dev": None}
        if missing := [part for part in required if official[part] is None]:
            raise ValueError(
                f"{name} has no {' and no '.join(missing)} split; it has: {', '.join(available)}. "
                'Say what is what, for example splits={"train": "'
                f'{next(iter(available))}[:80%]", "test": "{next(iter(available))}[80%:]"}}.'
            )
        return official
    if unknown := sorted(set(splits) - set(OFFICIAL)):
        raise ValueError(f"splits has {', '.join(unknown)}: expected train, dev or test.")
    for part, words in splits.items():
        try:
            available[words]
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"splits[{part!r}]={words!r} is no split of {name}; it has: {', '.join(available)}."
            ) from error
    return {part: splits.get(part) for part in OFFICIAL}


def iterate_features(builder, names, split):
    """Yields the values of the features `names` of each example, as NumPy has them."""
    dataset = builder.as_dataset(split=split).map(lambda x: tuple(x[name] for name in names))
    for batch in dataset.ragged_batch(1024):  # three times as fast as one by one
        yield from zip(*(column.numpy() for column in batch), strict=True)
