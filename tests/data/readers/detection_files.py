"""Pictures with squares and their boxes, and their files for COCO and Pascal VOC."""

import json

import keras
import numpy as np

import keras_attention as ka

HEIGHT, WIDTH, LABELS = 24, 32, ("dark", "light")


def draw(count, seed):
    """Return a list of `BoxedImage`: one or two squares on grey, dark or light."""
    generator = np.random.default_rng(seed)
    examples = []
    for k in range(count):
        image = np.full((HEIGHT, WIDTH, 3), 120, "uint8")
        boxes, labels = [], []
        for left in (0, 16)[: generator.integers(1, 3)]:
            x, y = left + generator.integers(0, 7), generator.integers(0, 15)
            side, kind = generator.integers(6, 10), int(generator.integers(2))
            image[y : y + side, x : x + side] = (20, 230)[kind]
            boxes.append((x, y, min(x + side, WIDTH), min(y + side, HEIGHT)))
            labels.append(LABELS[kind])
        examples.append(ka.data.BoxedImage(image, boxes, labels, name=k))
    return [ka.data.readers.boxed_images.check_boxes(example)[0] for example in examples]


def write_coco(folder, examples, name="annotations.json"):
    """Write pictures and a JSON file, whose ids are not 0, 1, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "images": [],
        "categories": [{"id": 9, "name": "light"}, {"id": 4, "name": "dark"}],
        "annotations": [],
    }
    for k, example in enumerate(examples):
        keras.utils.save_img(folder / f"{k}.png", example.image, scale=False)
        entry = {"id": 100 + k, "file_name": f"{k}.png", "width": WIDTH, "height": HEIGHT}
        content["images"].append(entry)
        for label, (x0, y0, x1, y1), crowd in example.objects():
            content["annotations"].append(
                {
                    "id": len(content["annotations"]) + 1,
                    "image_id": 100 + k,
                    "category_id": {"dark": 4, "light": 9}[label],
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "area": (x1 - x0) * (y1 - y0),
                    "iscrowd": int(crowd),
                }
            )
    (folder / name).write_text(json.dumps(content))
    return folder / name


def write_voc(folder, examples):
    """Write the folders of Pascal VOC."""
    for name in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for k, example in enumerate(examples):
        keras.utils.save_img(folder / "JPEGImages" / f"{k:03}.png", example.image, scale=False)
        objects = ""
        for label, box, crowd in example.objects():
            corners = zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
            corners = "".join(f"<{name}>{int(x)}</{name}>" for name, x in corners)
            objects += f"<object><name>{label}</name><difficult>{int(crowd)}</difficult>"
            objects += f"<bndbox>{corners}</bndbox></object>"
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
        text = f"<annotation><filename>{k:03}.png</filename>{size}{objects}</annotation>"
        (folder / "Annotations" / f"{k:03}.xml").write_text(text)
    return folder
