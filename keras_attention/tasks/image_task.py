"""`ImageTask`: what tasks share whose examples are pictures with classes."""

from keras_attention import data
from keras_attention.data.splits import hold_out
from keras_attention.tasks.task import DEV_FRACTION, Task

IMAGE_SIZE = 48  # of pictures in folders, unless another size is asked for


class ImageTask(Task):
    """A task of pictures, each of one class."""

    example_kind, holds = data.ImageSplit, "images"
    unit = "images"

    @classmethod
    def collect(cls, examples):
        split = data.ImageSplit.of(examples)
        names = [str(k) for k in range(int(split.labels.max(initial=0)) + 1)]
        return data.ImageSplit.collect(split, labels=names, dev_fraction=0)

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
