"""The sentences of movie reviews, `ka.data.sentence_polarity`, as a data set of the commands."""

NAME = "sentence_polarity"
ABOUT = {
    "name": "sentence polarity, version 1.0 (Pang and Lee, 2005), as NLTK publishes it",
    "licence": "CC BY 4.0",
    "notes": (
        "split by class with a fixed seed: a tenth for testing, a tenth for choosing the epoch, "
        "the others for training",
    ),
}
