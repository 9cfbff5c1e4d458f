"""The tag schemes BIO, IOBES, BILOU and BMES, and the entities that tags mark."""

# The prefixes of tags in BIO, IOBES (BIOES), BILOU and BMES. S and U mark an entity of one token, B
# the first token of a longer one, E and L the last token, I and M the tokens in between.
FIRST, LAST, INSIDE = "BSU", "ESLU", "IM"
SCHEMES = {"bio": "BI", "iobes": "BIES", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES"}


def is_entity_tag(tag):
    """Return whether a string is a tag of BIO, IOBES, BILOU or BMES, such as `O` or `B-person`."""
    return tag == "O" or (tag[:1] in (*FIRST, *LAST, *INSIDE) and tag[1:2] == "-")


def find_spans(tags):
    """Return the entities in the tags of a sentence, a list of (start, end, label).

    `end` is exclusive. An `I-X` or `E-X` tag that does not continue an entity of type X begins a
    new entity, as in seqeval and conlleval.
    """
    spans, is_open = [], False
    for k, tag in enumerate(tags):
        mark, _, label = tag.partition("-")
        if mark == "O":
            continue
        if is_open and mark not in FIRST and spans[-1][1:] == (k, label):
            spans[-1] = (spans[-1][0], k + 1, label)
        else:
            spans.append((k, k + 1, label))
        is_open = mark not in LAST
    return spans


def find_scheme(labels):
    """Return the first scheme in `SCHEMES` that has the prefixes of all labels, or None."""
    marks = {tag[:1] for tag in labels if tag != "O"}
    return next((name for name, letters in SCHEMES.items() if marks <= set(letters)), None)


def may_follow(tag, next_tag, scheme):
    """Return whether a tag scheme allows `next_tag` right after `tag`.

    A sentence begins and ends as if there were the tag `O` before and after it. An `I`, `M`, `E` or
    `L` tag continues an entity of its type. In BIO an entity may end after any of its tags. In the
    other schemes it ends with an `E`, `L`, `S` or `U` tag.

    Args:
        tag, next_tag: str, such as `"O"` or `"B-person"`.
        scheme: str, a key of `SCHEMES`.
    """
    (mark, _, label), (next_mark, _, next_label) = tag.partition("-"), next_tag.partition("-")
    is_open = mark != "O" and mark not in LAST
    if next_mark != "O" and next_mark not in FIRST:
        return is_open and label == next_label
    return not is_open or scheme == "bio"


def find_forbidden(tags, scheme):
    """Return the index of the first tag that may not follow the tag before it, or None.

    `tags` is a list of str, and `scheme` a key of `SCHEMES`. If the last entity is not closed, the
    result is the number of tags.
    """
    pairs = zip(("O", *tags), (*tags, "O"), strict=True)
    return next((k for k, pair in enumerate(pairs) if not may_follow(*pair, scheme)), None)
