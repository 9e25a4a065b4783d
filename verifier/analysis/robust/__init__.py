"""The least and greatest probability over all matrices that the data allow."""
