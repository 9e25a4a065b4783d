"""Evidence bundles: everything that an assurance case points at in one folder or archive, and the check of it.

    files (a) inputs    copies of spec, model, matrices and context, and what was asked: `request`
          (b) results   what the program computed from them: runs, explanations, certificates: `making`
          (c) derived   what follows from (a) and (b) byte for byte: report, case, outputs for CI, manifest: `derived`

`build` makes them in this order. `check` goes back: (c) is derived again and compared, (b) is compared with (a).
"""
