"""Ids of the labels that write a tree. `blocks.parser_state` follows them."""

PADDING, START, END, CLOSE = range(4)  # ids of targets; labels of constituents and tags follow
FIRST_LABEL = 4
EACH = 2  # constituents that each word lets open, beside `spare_constituents`
