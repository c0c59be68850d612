"""The nouns: problems, rollout trees and the files they live in. Numpy and the standard library only."""
