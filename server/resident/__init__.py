"""The resident evaluator: one GPU's workers, kept between the calls of many processes."""
