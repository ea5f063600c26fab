"""Lines and pages of text, drawn from a seed in Debian's fonts, and what two trained models make of them.

What becomes of a picture before a model, and of a model's answer behind it, is what the wheel of the models does.
"""
import pathlib
import string

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")  # of Debian's fonts-dejavu-core
FACES = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSerif", "DejaVuSerif-Bold")
LINE_HEIGHT, LINE_WIDTH = 48, 480
PAGE_SIDE = 480
NOISE = 12  # standard deviation, of 255
FOUND = 0.3  # probability from which on a pixel is one of text
UNCLIP = 1.5  # how far found regions grow, which the detector learned shrunk
LEAST_AREA = 16  # pixels of a region


# --- Drawing ----------------------------------------------------------------------------------------------------------


def font(random, size):
    return ImageFont.truetype(str(FONTS / f"{random.choice(FACES)}.ttf"), size)


def word(random):
    kind = random.integers(6)
    if kind == 0:
        return "".join(random.choice(list(string.digits), random.integers(2, 7)))
    letters = "".join(random.choice(list("aeiou" if i % 2 else "bcdfghklmnprstvw")) for i in range(random.integers(3, 10)))
    return {1: letters.upper(), 2: letters.capitalize(), 3: letters + random.choice(list(",.:;!?"))}.get(kind, letters)


def sentence(random, longest):
    text = word(random)
    for _ in range(8):
        more = f"{text} {word(random)}"
        if len(more) > longest:
            break
        text = more
    return text


def colours(random):
    """Of the paper and of the ink."""
    light, dark = random.integers(170, 256, 3), random.integers(0, 90, 3)
    pair = (light, dark) if random.random() < 0.7 else (dark, light)
    return [tuple(int(part) for part in colour) for colour in pair]


def grained(image, random):
    noise = random.normal(0, NOISE, (image.height, image.width, 3))
    return Image.fromarray(np.clip(np.asarray(image, np.float64) + noise, 0, 255).astype(np.uint8))


def line(random):
    """A picture of one line, and what is written there."""
    text, face = sentence(random, 24), font(random, int(random.integers(18, 40)))
    paper, ink = colours(random)
    left, top, right, bottom = face.getbbox(text)
    border = [int(side) for side in random.integers(2, 8, 4)]
    image = Image.new("RGB", (right - left + border[0] + border[1], bottom - top + border[2] + border[3]), paper)
    ImageDraw.Draw(image).text((border[0] - left, border[2] - top), text, font=face, fill=ink)
    return grained(image, random), text


def line_box(draw, at, text, face):
    """Of the text, as high as the letters of its face reach up and down: left, top, right, bottom."""
    left, _, right, _ = draw.textbbox(at, text, font=face)
    return left, at[1], right, at[1] + sum(face.getmetrics())


def page(random):
    """A picture of a page, and the boxes of its lines."""
    paper, ink = colours(random)
    image = Image.new("RGB", (PAGE_SIDE, PAGE_SIDE), paper)
    draw, boxes, down = ImageDraw.Draw(image), [], int(random.integers(10, 40))
    while down < PAGE_SIDE - 60:
        size = int(random.integers(16, 40))
        face = font(random, size)
        text = sentence(random, int(random.integers(6, 22)))
        across = int(random.integers(8, 100))
        box = line_box(draw, (across, down), text, face)
        if max(box[2:]) < PAGE_SIDE - 8:
            draw.text((across, down), text, font=face, fill=ink)
            boxes.append(box)
        down = int(box[3] + random.integers(14, 40))
    return grained(image, random), boxes


def normalised(image):
    """Blue, green, red in [-1, 1], channels first."""
    return ((np.asarray(image, np.float32)[..., ::-1] / 255 - 0.5) / 0.5).transpose(2, 0, 1)


def lines(seed, count):
    """What the recognition model reads, and what is written there."""
    random = np.random.default_rng(seed)
    made, texts = np.zeros((count, 3, LINE_HEIGHT, LINE_WIDTH), np.float32), []
    for row in made:
        image, text = line(random)
        wide = min(LINE_WIDTH, -(-image.width * LINE_HEIGHT // image.height))
        row[..., :wide] = normalised(image.resize((wide, LINE_HEIGHT), Image.Resampling.BILINEAR))
        texts.append(text)
    return made, texts


def pages(seed, count):
    """What the detection model reads, and the boxes of each page."""
    random = np.random.default_rng(seed)
    drawn = [page(random) for _ in range(count)]
    return np.stack([normalised(image) for image, _ in drawn]), [boxes for _, boxes in drawn]


# --- Recognition ------------------------------------------------------------------------------------------------------


def read(scores, signs):
    """The texts in the answer of the recognition model."""
    texts = []
    for row in scores.argmax(-1):
        kept = [sign for sign, before in zip(row, [0, *row]) if sign not in (0, before)]
        texts.append("".join(signs[sign] for sign in kept).strip())
    return texts


def edits(got, want):
    """Characters to insert, delete or replace (Levenshtein)."""
    costs = list(range(len(want) + 1))
    for i, sign in enumerate(got, 1):
        before, costs[0] = costs[0], i
        for j, other in enumerate(want, 1):
            before, costs[j] = costs[j], min(costs[j] + 1, costs[j - 1] + 1, before + (sign != other))
    return costs[-1]


def character_accuracy(scores, texts, signs):
    wrong = sum(edits(got, want) for got, want in zip(read(scores, signs), texts))
    return 1 - wrong / sum(map(len, texts))


# --- Detection --------------------------------------------------------------------------------------------------------


def regions(mask):
    """The rows and the columns of each connected region of a mask."""
    left = {(int(row), int(column)) for row, column in np.argwhere(mask)}
    while left:
        open_ends, region = [left.pop()], []
        while open_ends:
            row, column = open_ends.pop()
            region.append((row, column))
            for near in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if near in left:
                    left.remove(near)
                    open_ends.append(near)
        yield np.array(region).T


def found_boxes(probabilities):
    for rows, columns in regions(probabilities > FOUND):
        if len(rows) < LEAST_AREA:
            continue
        left, top, right, bottom = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        width, height = right - left, bottom - top
        out = width * height * UNCLIP / (2 * (width + height))
        yield max(0, left - out), max(0, top - out), min(PAGE_SIDE, right + out), min(PAGE_SIDE, bottom + out)


def overlap(one, other):
    """Intersection over union."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return width * height / (sum(areas) - width * height)


def mean_overlap(probabilities, boxes):
    """Over the lines of all pages: how well the best box that was found is the line's, none as 0."""
    best = []
    for one, truth in zip(probabilities, boxes):
        found = list(found_boxes(one[0]))
        best += [max((overlap(box, candidate) for candidate in found), default=0.0) for box in truth]
    return float(np.mean(best))
