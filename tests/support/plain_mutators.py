"""The definitions of the mutators written down once more: float64, loops over pixels, nothing shared with ours.

Images go in as arrays (H, W, 3) and come out as float64, not rounded and not cut off, so that a test can say how far
the rounded result may be away.
"""

import math

import numpy as np


def noise(height, width, seed=0):
    """An image of even random levels."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def impulse():
    """A white pixel in a black image."""
    image = np.zeros((8, 8, 3), np.uint8)
    image[3, 4] = 255
    return image


def mirrored(place, side):
    """The line that stands at `place` when the image is mirrored about its outermost lines: dcb|abcd|cba."""
    if side == 1:
        return 0
    place = abs(place) % (2 * side - 2)
    return place if place < side else 2 * side - 2 - place


def gaussian_blur(image, sigma, reach=9):
    """The whole kernel, as good as without an end."""
    radius = math.ceil(reach * sigma)
    weights = [math.exp(-((step / sigma) ** 2) / 2) for step in range(-radius, radius + 1)]
    weights = [weight / sum(weights) for weight in weights]
    return along_columns(along_rows(np.asarray(image, float), weights), weights)


def along_rows(image, weights):
    radius, width = len(weights) // 2, image.shape[1]
    out = np.zeros_like(image)
    for column in range(width):
        for step, weight in zip(range(-radius, radius + 1), weights, strict=True):
            out[:, column] += weight * image[:, mirrored(column + step, width)]
    return out


def along_columns(image, weights):
    return along_rows(image.swapaxes(0, 1), weights).swapaxes(0, 1)


def bilinear(image, x, y, outside):
    """The value at column x and row y of pixel centres; `outside` gives the pixel at a whole row and column."""
    left, top = math.floor(x), math.floor(y)
    a, b = x - left, y - top
    corners = [
        (1 - a) * (1 - b) * outside(image, top, left),
        a * (1 - b) * outside(image, top, left + 1),
        (1 - a) * b * outside(image, top + 1, left),
        a * b * outside(image, top + 1, left + 1),
    ]
    return sum(corners)


def black(image, row, column):
    height, width = image.shape[:2]
    return image[row, column] if 0 <= row < height and 0 <= column < width else np.zeros(image.shape[2:])


def repeated(image, row, column):
    height, width = image.shape[:2]
    return image[min(max(row, 0), height - 1), min(max(column, 0), width - 1)]


def folded(image, row, column):
    return image[mirrored(row, image.shape[0]), mirrored(column, image.shape[1])]


def to_32nds(value):
    """The nearest multiple of 1/32; between two, the upper."""
    return math.floor(value * 32 + 0.5) / 32


def rotation(image, angle_deg, across=to_32nds, down=to_32nds):
    """Complex numbers: a point c + z of the result shows c + z e^(i angle), with the imaginary axis downwards.

    The position is put on a grid by `across` and `down`.
    """
    image = np.asarray(image, float)
    height, width = image.shape[:2]
    centre = complex((width - 1) / 2, (height - 1) / 2)
    turn = complex(math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg)))
    out = np.zeros_like(image)
    for row in range(height):
        for column in range(width):
            source = centre + (complex(column, row) - centre) * turn
            out[row, column] = bilinear(image, across(source.real), down(source.imag), black)
    return out


def scaled(plane, factor, grid=to_32nds):
    height, width = plane.shape
    out = np.zeros(plane.shape)
    for row in range(height):
        for column in range(width):
            x = (column - (width - 1) / 2) / factor + (width - 1) / 2
            y = (row - (height - 1) / 2) / factor + (height - 1) / 2
            out[row, column] = bilinear(plane, grid(x), grid(y), repeated)
    return out


def chromatic_aberration(image, expansion, sigma):
    planes = [np.asarray(image[..., channel], float) for channel in range(3)]
    planes[0], planes[2] = scaled(planes[0], 1 + expansion), scaled(planes[2], 1 / (1 + expansion))
    if sigma:
        planes[0], planes[2] = gaussian_blur(planes[0], sigma), gaussian_blur(planes[2], sigma)
    return np.stack(planes, axis=-1)


def motion_blur(image, length, angle_deg, parts=4000):
    """The mean of the interpolated image over the middles of many short parts of the path."""
    image = np.asarray(image, float)
    right, down = math.cos(math.radians(angle_deg)), -math.sin(math.radians(angle_deg))
    weights = {}
    for part in range(parts):
        time = ((part + 0.5) / parts - 0.5) * length
        x, y = time * right, time * down
        for i in (math.floor(y), math.floor(y) + 1):
            for j in (math.floor(x), math.floor(x) + 1):
                share = max(0, 1 - abs(x - j)) * max(0, 1 - abs(y - i)) / parts
                weights[i, j] = weights.get((i, j), 0) + share
    out = np.zeros_like(image)
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            out[row, column] = sum(
                share * folded(image, row - i, column - j) for (i, j), share in weights.items() if share
            )
    return out


def pixelation(image, block):
    image = np.asarray(image, float)
    out = np.zeros_like(image)
    for top in range(0, image.shape[0], block):
        for left in range(0, image.shape[1], block):
            cell = (slice(top, top + block), slice(left, left + block))
            out[cell] = image[cell].mean(axis=(0, 1))
    return out


def without_chroma(image, channel):
    """JFIF there, one channel 0, and back."""
    red, green, blue = np.moveaxis(np.asarray(image, float), -1, 0)
    y = 0.299 * red + 0.587 * green + 0.114 * blue
    cb = 128 - 0.168736 * red - 0.331264 * green + 0.5 * blue
    cr = 128 + 0.5 * red - 0.418688 * green - 0.081312 * blue
    if channel == "Cb":
        cb = 0 * cb
    else:
        cr = 0 * cr
    return np.stack(
        [y + 1.402 * (cr - 128), y - 0.344136 * (cb - 128) - 0.714136 * (cr - 128), y + 1.772 * (cb - 128)], axis=-1
    )


def haze(image, depth, beta, colour=(205, 208, 211)):
    smooth = gaussian_blur(depth, 2.0)
    out = np.zeros(image.shape)
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            through = math.exp(-beta * smooth[row, column])
            out[row, column] = image[row, column] * through + np.array(colour) * (1 - through)
    return out


def defocus(image, depth, kappa, focus):
    """Every source scatters to every pixel; each point spread is normalised over all whole offsets."""
    carried, received = scattered(image, depth, kappa, focus)
    return carried / received[..., np.newaxis]


def scattered(image, depth, kappa, focus):
    """The two sums of the definition: of colours, and of point spreads alone."""
    height, width = depth.shape
    rows, columns = np.mgrid[:height, :width]
    carried, received = np.zeros(image.shape), np.zeros(depth.shape)
    for row in range(height):
        for column in range(width):
            rho = kappa * abs(depth[row, column] - focus) / (depth[row, column] * focus)
            if rho < 1e-3:
                spread = ((rows == row) & (columns == column)).astype(float)
            else:
                far = math.ceil(12 * rho)
                line = sum(math.exp(-((step / rho) ** 2) / 2) for step in range(-far, far + 1))
                spread = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * rho**2)) / line**2
            carried += spread[..., np.newaxis] * image[row, column]
            received += spread
    return carried, received
