"""The paper's two theorems (appendix A), in numbers."""
