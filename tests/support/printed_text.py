"""What commands print, without the digits that differ from machine to machine."""

import re


def without_noise(text):
    """Numerical bounds depend on the library versions in their last digits; the numbers themselves do not."""
    text = re.sub(r"\+- \d\.\de-\d\d *", "+- BOUND ", text)
    text = re.sub(r"off by at most \S+ numerically", "off by at most BOUND numerically", text)
    return re.sub(r"by at most \S+\.$", "by at most BOUND.", text, flags=re.MULTILINE)
