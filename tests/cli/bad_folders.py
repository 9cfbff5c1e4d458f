"""Draws damaged folders of trained models with a seed."""

import dataclasses
import json
import random
import shutil

from tests.cli.bad_inputs import DEEP, flip

WHOLE = {
    "model.keras": "keras",
    "model.tflite": "litert",
    "model.int8.tflite": "litert-int8",
    "saved_model/saved_model.pb": "saved_model",
    "saved_model/variables/variables.index": "saved_model",
    "saved_model/variables/variables.data-00000-of-00001": "saved_model",
}

# Values that no field of a manifest has, and some that are right in another.
VALUES = [None, [], {}, "", "x", -1, 0, 1, 7, 10**9, 10**400, 1e308, float("nan"), True, ["a"]]
VALUES += ["/etc/passwd", "../labels.txt", "words.txt/", "a\0b", {"a": {"b": []}}, "\udcff", [[]]]
NONE = [b"", b"[]", b"null", b'"x"', b"7", b"{", b"\xff\xfe", DEEP, b"{}", b"[1, 2]", b"x" * 1000]


@dataclasses.dataclass(frozen=True)
class Damaged:
    """A command on a damaged folder.

    Attributes:
        words, right: the command on the damaged folder, and on the right one.
        damage: str, describes the damage.
        names: the message must contain one of them.
    """

    words: tuple
    right: tuple
    damage: str
    names: tuple


class Drawn:
    """Draws damage.

    Args:
        folder: parent of the damaged folders.
        models: dict, folder of a trained model -> a tuple with the inputs to predict.
        seed: int.
    """

    def __init__(self, folder, models, seed):
        self.folder, self.models, self.draw = folder, models, random.Random(seed)
        self.count = 0

    def case(self):
        model = self.draw.choice(sorted(self.models))
        self.count += 1
        copy = shutil.copytree(model, self.folder / f"model-{self.count}")
        kind = self.draw.choice(("model", "sidecar", "manifest", "field", "field", "swap"))
        damage, names, chosen = getattr(self, f"_{kind}")(model, copy)
        options = ("--with", chosen or self.draw.choice(("litert", "litert-int8", "keras")))
        tail = (*self.models[model], *options)
        return Damaged(("predict", copy, *tail), ("predict", model, *tail), damage, names)

    def _damage(self, path):
        """Damage the file `path`, and describe the damage."""
        content = path.read_bytes()
        damage = self.draw.choice(
            ["empty", "half", "flipped", "flipped", "text", "gone", "a folder"]
        )
        if damage in ("gone", "a folder"):
            path.unlink()
            if damage == "a folder":
                path.mkdir()
        else:
            new = {
                "empty": b"",
                "half": content[: self.draw.randrange(1, max(2, len(content)))],
                "flipped": flip(content, self.draw),
                "text": b"<html>not found</html>\n",
            }
            path.write_bytes(new[damage])
        return f"{path.name}: {damage}"

    def _model(self, model, copy):
        name = self.draw.choice(sorted(WHOLE))
        damage = self._damage(copy / name)
        return damage, (name.partition("/")[0], model.name), WHOLE[name]

    def _sidecar(self, model, copy):
        path = self.draw.choice(sidecars(copy))
        return self._damage(path), (path.name,), None

    def _manifest(self, model, copy):
        path, content = copy / "manifest.json", self.draw.choice(NONE)
        path.write_bytes(content)
        return f"manifest.json: {content[:10]!r}", ("manifest.json",), None

    def _field(self, model, copy):
        """Change or remove a field of the manifest."""
        path = copy / "manifest.json"
        manifest = json.loads(path.read_text("utf-8"))
        at = manifest
        keys = []
        while isinstance(at, dict) and at:
            keys.append(self.draw.choice(sorted(k for k in at if k not in UNREAD)))
            inner = at[keys[-1]]
            if not isinstance(inner, dict) or self.draw.random() < 0.2:
                break
            at = inner
        value = self.draw.choice([KeyError, *VALUES])
        if value is KeyError:
            del at[keys[-1]]
        else:
            at[keys[-1]] = value
        path.write_text(json.dumps(manifest))
        names = ("manifest.json", "model.", "saved_model", *keys)
        return f"{'.'.join(keys)} = {value!r:.30}", names, None

    def _swap(self, model, copy):
        """Replace a file by that of another model, if there is one."""
        if len(self.models) == 1:
            return self._sidecar(model, copy)
        other = self.draw.choice(sorted(m for m in self.models if m != model))
        mine, theirs = ({p.name for p in sidecars(m)} for m in (copy, other))
        names = [*sorted(mine & theirs), "model.tflite", "model.int8.tflite", "model.keras"]
        name = self.draw.choice([*names, "manifest.json"])
        shutil.copyfile(other / name, copy / name)
        named = ("manifest.json", "labels.txt", "words.txt", name, "characters", copy.name)
        if name == "manifest.json":  # whose task has other options
            named += ("--max-new-tokens is not for", "--temperature is not for")
        return f"{name} of {other.name}", named, WHOLE.get(name)


UNREAD = ("signatures", "ops", "parity", "checks", "warnings", "versions", "gpu", "drift")


def sidecars(folder):
    """List the vocabularies and labels."""
    kinds = (".txt", ".json", ".model")
    return sorted(
        path for path in folder.iterdir()
        if path.suffix in kinds and path.name not in ("manifest.json", "scores.json")
    )  # fmt: skip
