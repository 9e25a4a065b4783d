"""IoU and distances of boxes by their definitions, one pair at a time, in exact fractions: an oracle for the kernels.

Nothing here is shared with the package. A box in 3-D is (x, y, z, length, width, height, cosine, sine) with a
rational direction such as (3/5, 4/5), so every area and volume is exact.
"""

from fractions import Fraction


def corners(box):
    """Corners of the ground-plane rectangle, counter-clockwise."""
    x, y, _, length, width, _, cosine, sine = (Fraction(value) for value in box)
    half = Fraction(1, 2)
    return [
        (x + u * length * cosine - v * width * sine, y + u * length * sine + v * width * cosine)
        for u, v in ((half, half), (-half, half), (-half, -half), (half, -half))
    ]


def area(polygon):
    """Area of a simple polygon by the shoelace formula."""
    pairs = zip(polygon, polygon[1:] + polygon[:1], strict=True)
    return abs(sum((p[0] * q[1] - q[0] * p[1] for p, q in pairs), Fraction(0))) / 2


def clipped(polygon, p, q):
    """The part of a convex polygon on or left of the line from p to q (one step of Sutherland and Hodgman 1974)."""

    def side(r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    result = []
    for r, s in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if side(r) >= 0:
            result.append(r)
        if side(r) * side(s) < 0:
            part = side(r) / (side(r) - side(s))
            result.append((r[0] + part * (s[0] - r[0]), r[1] + part * (s[1] - r[1])))
    return result


def shared_ground(a, b):
    """Area of the intersection of two ground-plane rectangles; 0 where one has no area."""
    if 0 in (a[3], a[4], b[3], b[4]):
        return Fraction(0)
    polygon, window = corners(a), corners(b)
    for p, q in zip(window, window[1:] + window[:1], strict=True):
        polygon = clipped(polygon, p, q)
    return area(polygon) if polygon else Fraction(0)


def iou_bev(a, b):
    shared = shared_ground(a, b)
    both = Fraction(a[3]) * a[4] + Fraction(b[3]) * b[4] - shared
    return shared / both if both else Fraction(0)


def iou_3d(a, b):
    top = min(Fraction(a[2]) + Fraction(a[5]) / 2, Fraction(b[2]) + Fraction(b[5]) / 2)
    bottom = max(Fraction(a[2]) - Fraction(a[5]) / 2, Fraction(b[2]) - Fraction(b[5]) / 2)
    shared = shared_ground(a, b) * max(top - bottom, Fraction(0))
    both = Fraction(a[3]) * a[4] * a[5] + Fraction(b[3]) * b[4] * b[5] - shared
    return shared / both if both else Fraction(0)


def iou_2d(a, b):
    """By counting: both rectangles have whole corners, so they are sets of unit squares."""

    def squares(box):
        left, top, right, bottom = (int(value) for value in box)
        return {(x, y) for x in range(left, right) for y in range(top, bottom)}

    either = squares(a) | squares(b)
    return Fraction(len(squares(a) & squares(b)), len(either)) if either else Fraction(0)


def squared_distance(p, q):
    return sum((Fraction(u) - Fraction(v)) ** 2 for u, v in zip(p, q, strict=True))
