"""`facts`: generated sentences about people, and questions about them."""

import random

from keras_attention.core.checks import check_whole_number
from keras_attention.data.readers.questions import Answer, Question

PARTS = ("train", "dev", "test")  # with different surnames
FIRST = "Ada Bela Cora Dov Edda Finn Greta Hugo Ines Jan Kaja Leo Mina Nils Olga Paul".split()
BEGINNINGS = "Berg Dahl Falk Graf Holm Kern Lind Moor Nord Palm Rask Sand Thal Voss Wald".split()
ENDINGS = ("", "en", "er", "quist", "mann", "stein", "berg", "feld", "ling")
CITIES = "Oslo Rome Lyon Graz Bern Turin Porto Ghent Split Cork Lviv Varna Kiel Brno".split()
GOODS = "bread clocks lamps maps shoes soap tea toys wool books kites drums".split()
NUMBERS = "two three four five six seven nine ten".split()
SENTENCES = (
    "In {year} {name} moved from {home} to {city} and opened a shop for {goods}, with {count} "
    "helpers.",
    "{name} left {home} in {year}; in {city} she soon sold {goods}, and {count} people were busy "
    "there.",
    "The shop for {goods} in {city} was opened in {year} by {name}, who had come from {home}, and "
    "had {count} rooms.",
)
ASKED = {
    "year": ("When did {name} open her shop?", "In which year did {surname} come to {city}?"),
    "name": ("Who sold {goods}?", "Who came from {home}?"),
    "home": ("Where did {name} come from?", "Which town did {surname} leave?"),
    "city": ("Where did {name} sell {goods}?", "Where was the shop of {surname}?"),
    "goods": ("What did {name} sell?", "What could one buy from {surname} in {city}?"),
}
WITHOUT = ("Who was the father of {name}?", "When did {surname} die?", "How rich was {name}?")


def facts(part, size, seed=0, *, unanswerable=0.2):
    """Generate questions about people, for training a small question answerer.

    Return a list of `Question`. Each context has one or two sentences. The three splits have
    different surnames.

    Args:
        part: `"train"`, `"dev"` or `"test"`.
        size: int, the number of questions.
        seed: int. The same seed returns the same questions.
        unanswerable: float, the share of questions that their context does not answer.

    Raises:
        ValueError: `part` is not one of the three names.

    ```python
    import keras_attention as ka

    asked = ka.data.facts("train", 100)
    question = next(question for question in asked if question.answers)
    answer = question.answers[0]
    assert question.context[answer.start : answer.end] == answer.text
    assert 10 < sum(not question.answers for question in asked) < 30
    ```
    """
    if part not in PARTS:
        raise ValueError(f"part={part!r}: expected one of {', '.join(PARTS)}.")
    size = check_whole_number("facts", "size", size)
    draw = random.Random(f"{part} {seed}")
    surnames = [beginning + ending for beginning in BEGINNINGS for ending in ENDINGS]
    random.Random(seed).shuffle(surnames)
    surnames = surnames[PARTS.index(part) :: len(PARTS)]
    return [_ask(draw, surnames, unanswerable) for _ in range(size)]


def _ask(draw, surnames, unanswerable):
    """Return a random `Question`, whose context is about one or two people.

    `draw` is a `random.Random`. `surnames` is a list of str to choose from. `unanswerable` is the
    probability that the context does not contain the answer.
    """
    person, second = (_invent(draw, name) for name in draw.sample(surnames, 2))
    sentence = draw.choice(SENTENCES).format(**person)
    sentences = [sentence]
    if draw.random() < 0.5 and all(person[key] != second[key] for key in ("goods", "home")):
        sentences.insert(draw.randrange(2), draw.choice(SENTENCES).format(**second))
    context = " ".join(sentences)
    if draw.random() < unanswerable:
        return Question(draw.choice(WITHOUT).format(**person), context)
    field = draw.choice(sorted(ASKED))
    start = context.index(sentence) + sentence.index(person[field])
    asked = draw.choice(ASKED[field]).format(**person)
    return Question(asked, context, (Answer(person[field], start),))


def _invent(draw, surname):
    """Return random facts about a person with this surname, a dict of str."""
    home, city = draw.sample(CITIES, 2)
    return {
        "name": f"{draw.choice(FIRST)} {surname}",
        "surname": surname,
        "year": str(draw.randrange(1850, 2000)),
        "home": home,
        "city": city,
        "goods": draw.choice(GOODS),
        "count": draw.choice(NUMBERS),
    }
