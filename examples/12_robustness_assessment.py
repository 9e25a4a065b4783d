"""Is a detector robust in the circumstances of its use? The two industrial cases of a paper, from one file.

Wozniak, Segura and Mazo 2024 (Electronics 13(7), 1368) assess a medical and a road monitoring system with a
spreadsheet. Everything they state stands in 12_robustness_assessment.toml; their Boxes 1 to 7 follow from it. The
same from the command line, as a report with the six questions of the method for headings:

  verify assess examples/12_robustness_assessment.toml --markdown report.md

Run it from anywhere: python examples/12_robustness_assessment.py
"""

from pathlib import Path

from verifier.robustness.assessment.reader import read_assessment
from verifier.robustness.assessment.request import assess

mds, rms = read_assessment(Path(__file__).with_suffix(".toml")).assessments

print("Boxes 1 and 3: frequency in use, in the source data, and missing")
for each in mds.circumstances:
    shares = (float(share) for share in (each.frequency, each.source_frequency, each.missing))
    print(f"  {each.label:<61}  {'  '.join(f'{share:<4g}' for share in shares).rstrip()}")

significant = rms.circumstances[0]
print(f"Box 2: {significant.label}: {' x '.join(significant.risk.words)} = {significant.significance}")
lacking = "none of the source images" if significant.source_frequency == 0 else "some of the source images"
print(f"Box 4: {lacking} show it, so {significant.transformation} is applied")

print("Box 5: performance on the source and on the target data")
found = assess(mds)
(target,) = found.targets
for name, value in mds.source.performance.values.items():
    print(f"  {name:<9} {float(value):<5g}  {float(target.performance[name]):g}")

(sweep,) = rms.sweeps
print("Box 6: distance by SSIM against the amount of chromatic aberration")
print("  " + "  ".join(f"{float(setting):<5g}" for setting in sweep.settings).rstrip())
print("  " + "  ".join(f"{float(each.distances['ssim'].similarity):<5g}" for each in sweep.targets).rstrip())
print("  " + "  ".join(f"{float(each.distances['ssim'].distance):<5g}" for each in sweep.targets).rstrip())

print(f"Box 7: epsilon(d) = {mds.rules['cw_ssim'].tolerance}")
for one in target.outcomes:
    told = ", ".join(f"{number:g}" for number in (one.change, one.distance, one.tolerance))
    print(f"  {one.metric:<9} |change|, d, epsilon(d): {told}: {one.verdict.value}")
print(f"{mds.title}: {'robust' if found.verdict.value == 'satisfied' else 'not globally robust'}")

# Expected output:
# Boxes 1 and 3: frequency in use, in the source data, and missing
#   Density contrast may vary significantly                        0.15  0.05  0.1
#   Some pixel lines may be shifted                                0.2   0     0.2
#   The cross-section may be truncated                             0.15  0.1   0.05
#   Images may be blurred due to motion blur                       0.1   0.05  0.05
#   Images may be blurred (Gaussian blur)                          0.1   0     0.1
#   There may be salt and pepper noise in the images               0.1   0     0.1
#   The cross-sectional image can be rotated between -20° and 20°  0.1   0     0.1
#   Image resolution may be altered during preprocessing           0.1   0     0.1
# Box 2: The camera has a very low shutter speed: Rare x Unlikely x Catastrophic = 10
# Box 4: none of the source images show it, so motion_blur is applied
# Box 5: performance on the source and on the target data
#   precision 0.564  0.498
#   recall    0.51   0.384
#   AP0.5     0.526  0.414
#   AP0.75    0.396  0.264
#   AP        0.34   0.246
# Box 6: distance by SSIM against the amount of chromatic aberration
#   0      0.1    0.25   0.5    0.75   1
#   1      0.904  0.777  0.733  0.711  0.697
#   0      0.096  0.223  0.267  0.289  0.303
# Box 7: epsilon(d) = 0.01 if d <= 0.25, else d
#   AP        |change|, d, epsilon(d): 0.094, 0.154, 0.01: violated
#   precision |change|, d, epsilon(d): 0.066, 0.154, 0.01: violated
#   recall    |change|, d, epsilon(d): 0.126, 0.154, 0.01: violated
# Medical Diagnosis System (MDS): not globally robust
