"""Write customers of no bank in the project: those of the bank that left it."""

from one_logit.task import customers

customers(99, 400, 0.3).to_parquet("spare.parquet", index=False)
