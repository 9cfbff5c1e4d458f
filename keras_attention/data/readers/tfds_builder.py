"""Finds datasets in TensorFlow Datasets by name, prepares them, and reads them split by split."""

import difflib

OFFICIAL = {"train": ("train",), "dev": ("validation", "dev", "val", "valid"), "test": ("test",)}


def find_tfds_builder(tfds, name, data_dir):
    """Return the TFDS builder for the dataset `name`.

    If the name is unknown, a ValueError lists similar names. `tfds` is the module
    `tensorflow_datasets`. `data_dir` is the folder with TFDS's data, or None for TFDS's default.
    """
    base, _, config = name.partition("/")
    base = base.partition(":")[0]
    try:
        configs = [c.name for c in tfds.builder_cls(base).BUILDER_CONFIGS]
    except ValueError as error:  # includes TFDS's DatasetNotFoundError
        names = tfds.list_builders(with_community_datasets=False)
        close = ", ".join(difflib.get_close_matches(base, names, n=3))
        hint = f"Near it: {close}." if close else "See its catalogue for the names."
        raise ValueError(f"TFDS lacks the dataset {name!r}. {hint}") from error
    if len(configs) > 1 and not config:
        # TFDS would take the first config, such as Afrikaans for Universal Dependencies.
        raise ValueError(
            f"{name} has several configs: {_few(configs)}. Choose one, such as {name}/{configs[0]}."
        )
    try:
        return tfds.builder(name, data_dir=data_dir)
    except ValueError as error:
        close = difflib.get_close_matches(config.partition(":")[0], configs, n=5) or configs
        raise ValueError(f"TFDS cannot make {name!r}. Configs of {base}: {_few(close)}.") from error


def _few(names, most=10):
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def prepare_builder(tfds, builder, name):
    """Download and prepare the data of `builder`, and return `builder`.

    `tfds` is the module tensorflow_datasets, `builder` a TFDS builder, and `name` the name of the
    dataset in error messages.
    """
    try:
        builder.download_and_prepare()
    except (OSError, tfds.download.DownloadError) as error:
        raise ConnectionError(
            f"The data of {name} is not in {builder.data_dir} and could not be fetched: "
            f"{type(error).__name__}, {_first_line(error)}"
        ) from error
    except AssertionError as error:  # some files must be downloaded by hand
        raise ValueError(f"TFDS cannot prepare {name}: {_first_line(error)}") from error
    return builder


def read_splits(tfds, builder, name, splits, read, required=("train", "test")):
    """Download a dataset, read its splits, and return a dict from the split to its examples.

    The keys are `"train"`, `"dev"` and `"test"`. The examples are `read(builder, split)`. `splits`
    is a dict from these keys to TFDS's notation, or None for the official splits. `required` are
    the official splits that must exist. `tfds` is the module tensorflow_datasets, `builder` a TFDS
    builder, and `name` the name of the dataset in error messages.
    """
    builder = prepare_builder(tfds, builder, name)
    parts = find_splits(builder, name, splits, required)
    return {part: read(builder, split) for part, split in parts.items() if split}


def _first_line(error):
    return str(error).strip().split("\n")[0][:300]


def find_splits(builder, name, splits, required=("train", "test")):
    """Map train, dev and test to splits in TFDS's notation, or to None.

    `builder` is a TFDS builder, and `name` the name of the dataset in error messages. `splits` is a
    dict from some of these names to TFDS's notation, or None for the official splits. `required`
    are the official splits that must exist. If only test is required and it is missing, the dev
    split is used as test.
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
                f"{name} has no {' and no '.join(missing)} split, but {', '.join(available)}. "
                'Name them, for example splits={"train": "'
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
                f"splits[{part!r}]={words!r}: expected splits of {name}, {', '.join(available)}."
            ) from error
    return {part: splits.get(part) for part in OFFICIAL}


def iterate_features(builder, names, split):
    """Yield the values of the features `names` for each example, as NumPy arrays or scalars.

    `builder` is a TFDS builder whose data are prepared, and `split` a split in TFDS's notation.
    """
    dataset = builder.as_dataset(split=split).map(lambda x: tuple(x[name] for name in names))
    for batch in dataset.ragged_batch(1024):  # three times as fast as single examples
        yield from zip(*(column.numpy() for column in batch), strict=True)


def read_words(builder, split, tokens, tags, head=None):
    """Read sentences from TFDS: return a list of (tokens, tags), or (tokens, tags, heads).

    `builder` is a TFDS builder, and `split` a split in TFDS's notation. `tokens`, `tags` and `head`
    are the names of features. Heads are read only if `head` is given. TFDS's Universal Dependencies
    have a token for every line of the file. The head of a word is a number, but the head of a
    multiword token or an empty node is the string "None". Only words are returned.
    """
    names = getattr(builder.info.features[tags].feature, "names", None)
    sentences = []
    for example in iterate_features(
        builder, [name for name in (tokens, tags, head) if name], split
    ):
        rows = [
            (token.decode("utf-8"), names[tag] if names else tag.decode("utf-8"), *map(int, heads))
            for token, tag, *heads in zip(*example, strict=True)
            if not head or heads[0].isdigit()
        ]
        if rows:
            sentences.append(tuple(zip(*rows, strict=True)))
    return sentences
