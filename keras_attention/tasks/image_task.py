"""`ImageTask`: what tasks share whose examples are pictures with classes."""

from keras_attention import data
from keras_attention.data.splits import hold_out
from keras_attention.tasks.task import DEV_FRACTION, Task

IMAGE_SIZE = 48  # of pictures in folders, unless another size is asked for


class ImageTask(Task):
    """A task of pictures, each of one class."""

    example_kind, holds = data.ImageSplit, "images"

    @classmethod
    def collect(cls, examples):
        split = data.ImageSplit.of(examples)
        names = [str(k) for k in range(int(split.labels.max(initial=0)) + 1)]
        return data.ImageSplit.collect(split, labels=names, dev_fraction=0)

    @classmethod
    def list_file_options(cls, source):
        return "folders of pictures", ("image_size", "on_error")

    @classmethod
    def read_files(cls, source):
        return data.from_image_folder(
            **source.files,
            image_size=source.image_size or IMAGE_SIZE,
            color_mode=source.color_mode,
            resizing=source.resizing,
            labels=source.labels,
            **source.skipping,
        )

    @classmethod
    def count_examples(cls, data_set):
        return {f"{part} images": len(split) for part, split in data_set.parts.items()}

    def find_labels(self, data_set):
        return data_set.labels

    def check_image_shape(self, data_set):
        """Refuses pictures of another size than the model's."""
        shape = (*self.preprocessor.image_size, self.preprocessor.channels)
        image_shape = tuple(data_set.train.image_shape)
        if image_shape != shape:
            raise ValueError(
                f"The pictures are {image_shape}, and this model takes {shape}: read them "
                f"with image_size={shape[:2]} and "
                f"color_mode={'grayscale' if shape[2] == 1 else 'rgb'!r}."
            )

    def hold_out(self, train, dev, seed):
        if len(dev) or not len(train):
            return train, dev
        remaining, held_out = hold_out(len(train), DEV_FRACTION, seed)
        return train[remaining], train[held_out]
