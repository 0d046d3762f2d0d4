"""The performance of acpgen and of what it generates, side by side with what people use today."""
