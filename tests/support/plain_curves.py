"""The points of the trade-off curves as their definitions are written: one threshold, one image at a time.

Nothing is shared with the package but the columns of the logs. Matching is by distance on the ground; paths end with
their last pose.
"""

import math
from collections import defaultdict

from small_logs import plain_distance


class Plain:
    """A source of some logs at one sensitivity `tau`; `standard` is a function of the strength."""

    def __init__(self, logs, source, standard, tau, control_radius=2.0):
        self.logs = logs
        self.log = logs.image_log.tolist()
        self.positive = [bool(logs.positive[log]) for log in logs.image_log.tolist()]
        self.place = [tuple(point) for point in logs.position_m.tolist()]
        self.people, self.reports = defaultdict(list), defaultdict(list)
        for image, point in zip(logs.person_image.tolist(), logs.person_m.tolist(), strict=True):
            self.people[image].append(tuple(point))
        found = logs.source(source)
        rows = zip(found.image.tolist(), found.strength.tolist(), found.point_m.tolist(), strict=True)
        for image, strength, point in rows:
            if standard(strength) <= tau:
                self.reports[image].append((strength, tuple(point)))
        self.radius = control_radius

    def images(self, positive):
        return [image for image, each in enumerate(self.positive) if each == positive]

    def ahead(self, image, point):
        corners = [self.place[image]]  # and those of the images after it in its log, which stand together
        for each in range(image + 1, len(self.place)):
            if self.log[each] != self.log[image]:
                break
            corners.append(self.place[each])
        return plain_distance(corners, point, self.radius)

    def matched(self, image, reach):
        """(found people, false positives): the surest report takes its nearest person that is still free."""
        free, false = list(self.people[image]), []
        for _, point in sorted(self.reports[image], key=lambda each: -each[0]):
            near = [person for person in free if math.dist(person, point) <= reach]
            if near:
                free.remove(min(near, key=lambda person: math.dist(person, point)))
            else:
                false.append(point)
        return len(self.people[image]) - len(free), len(false)

    def roc_a(self, reach, most):
        matched = [self.matched(image, reach) for image in range(len(self.place))]
        people = sum(map(len, self.people.values()))
        return sum(found for found, _ in matched) / people, efficiency(sum(f for _, f in matched), len(matched), most)

    def roc_b(self, reach, most):
        found = sum(self.matched(image, reach)[0] for image in self.images(True))
        people = sum(len(self.people[image]) for image in self.images(True))
        alarms = sum(self.matched(image, reach)[1] > 0 for image in self.images(False))
        return found / people, efficiency(alarms, len(self.images(False)), most)

    def roboticizer(self, radius, low, high, most):
        hits = counted = alarms = 0
        for image in self.images(True):
            here = self.place[image]
            people = sorted(self.people[image], key=lambda person: math.dist(person, here))
            for person in people[:1]:
                if low <= math.dist(person, here) < high:
                    counted += 1
                    hits += any(math.dist(person, point) <= radius for _, point in self.reports[image])
        for image in self.images(False):
            alarms += any(
                low <= math.dist(point, self.place[image]) < high
                and all(math.dist(person, point) > radius for person in self.people[image])
                for _, point in self.reports[image]
            )
        return (hits / counted if counted else None), efficiency(alarms, len(self.images(False)), most)

    def pathifier(self, strict, lenient, forgiven, most):
        def truth(image):
            return min((self.ahead(image, person) for person in self.people[image]), default=math.inf)

        def missed(image):
            return not any(self.ahead(image, point) <= truth(image) for _, point in self.reports[image])

        def reported(image, bin_m):
            return any(bin_m[0] <= self.ahead(image, point) < bin_m[1] for _, point in self.reports[image])

        def previous(image):
            same = image > 0 and self.logs.image_log[image - 1] == self.logs.image_log[image]
            return image - 1 if same else None

        counted = misses = alarms = 0
        for image in self.images(True):
            before = previous(image)
            if strict[0] <= truth(image) < strict[1]:
                counted += 1
                misses += missed(image)
            elif lenient[0] <= truth(image) < lenient[1]:
                counted += 1
                if before is None or math.isinf(truth(before)):
                    misses += missed(image) and not forgiven
                else:
                    misses += missed(image) and missed(before)
        for image in self.images(False):
            before = previous(image)
            again = not forgiven if before is None else reported(before, lenient)
            alarms += reported(image, strict) or (reported(image, lenient) and again)
        safety = None if not counted else (counted - misses) / counted
        return safety, efficiency(alarms, len(self.images(False)), most)


def efficiency(false, images, most):
    return 1 - min(false / images / most, 1) if images else None
