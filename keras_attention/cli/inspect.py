"""`export` and `inspect`: another file of a trained model, and the contents of a model file."""

from keras_attention.cli.jobs import export_file
from keras_attention.cli.printing import say
from keras_attention.cli.sources import Source
from keras_attention.export import inspection
from keras_attention.tasks.folders import FORMATS
from keras_attention.tasks.presets import find_preset
from keras_attention.tasks.task import CALIBRATING


def export(preset, output, *, file, data_dir, **options):
    """Writes the export and prints its report.

    Args:
        file: examples to calibrate int8 on; None for the data that the model was trained on.
    """

    def find_examples(task):
        if file is None and not task.source.get("dataset"):
            return None
        files = {} if file is None else {"dev": file}
        source = Source.remembered(task.metadata, files=files, data_dir=data_dir)
        where = str(file or source.dataset)
        batches = task.make_batches(source.load(task.builder).dev, where)
        return [inputs for inputs, _ in batches.take(CALIBRATING).as_numpy_iterator()]

    say(str(export_file(find_preset(preset), output, examples=find_examples, **options)))


def inspect(path):
    """Prints signatures, ops and size of a model file, or of each in a trained folder."""
    path = find_preset(path)
    found = [path / name for name in FORMATS.values() if (path / name).exists()]
    for k, file in enumerate(found or [path]):
        content = inspection.inspect(file)
        if not content.signatures:
            raise ValueError(f"{file} is damaged: it holds no signature.")
        say(("\n" if k else "") + str(content))
