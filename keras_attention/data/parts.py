"""The three parts of a data set that is read from files: train, dev and test."""

from keras_attention.data.holding_out import held_out


def read_parts(read, paths):
    """{part: list of examples}: `paths` maps train, dev and test to a path, several, or None."""
    if not any(paths.values()):
        raise ValueError("No file given: pass the paths of train, dev or test.")
    return {name: _read_all(read, given) for name, given in paths.items()}


def _read_all(read, paths):
    if paths is None:
        return []
    paths = paths if isinstance(paths, list | tuple) else [paths]
    return [example for path in paths for example in read(path)]


def with_dev(train, dev, *, dev_fraction, seed):
    """(train, dev), lists of examples: where dev is empty, a part of train becomes it."""
    if dev or not train:
        return train, dev
    kept, held = held_out(len(train), dev_fraction, seed)
    return [train[i] for i in kept], [train[i] for i in held]
