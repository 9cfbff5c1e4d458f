"""Tags of BIO, BIOES, BILOU and BMES, and the entities that they mark."""

# The letters before a type in BIO, BIOES (IOBES), BILOU and BMES: S and U are of a single token, E
# and L of the last one, I and M of those between.
FIRST, LAST, INSIDE = "BSU", "ESLU", "IM"


def is_entity_tag(tag):
    """Return whether a tag is `O`, or one of these schemes, such as `B-person`."""
    return tag == "O" or (tag[:1] in (*FIRST, *LAST, *INSIDE) and tag[1:2] == "-")


def find_spans(tags):
    """Return a list of (start, end, label) of the entities that tags mark.

    An `I-` or `E-` that follows no tag of its kind begins an entity, as in seqeval and conlleval.
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
