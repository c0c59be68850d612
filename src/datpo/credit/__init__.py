"""What a block is worth: values of its ends, advantages, diversity among siblings."""
