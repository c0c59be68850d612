r"""The domain `math`: a boxed answer against a key, both in LaTeX.

Two steps: finding the answer, and saying whether it is the key's. The second can be made to run for ever by hostile
text and happens in killable workers (`pool`); only what needs no computing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from datpo.core.problem import Problem
from datpo.evaluate.verify import boxed, compare, keys, released, unboxed
from datpo.evaluate.verify.pool import Pair, Pool, shared_pool
from datpo.evaluate.verify.verdict import Verdict

REMEMBERED = 100_000  # verdicts, some 30 MB
LONGEST_REMEMBERED = 200  # characters of an answer; longer ones seldom come twice


@dataclass(frozen=True)
class Rules:
    """A checker's idea of an answer and of its being right.

    Attributes:
        name: for the header of a scores file, with the version of what it stands on.
        find: the answer in a response; None if there is none.
        is_no_key: whether no answer can be compared with a key.
        quick: the verdict on (key, answer) where no computing is needed, else None.
        module: whose `judge` the workers call for the others.
    """

    name: str
    find: Callable[[str], str | None]
    is_no_key: Callable[[str], bool]
    quick: Callable[[str, str], str | None]
    module: str


OWN = Rules(f"rules, Math-Verify {version('math-verify')}", boxed.find_answer, keys.is_no_key, compare.quick, "compare")
WITH_FALLBACK = Rules(
    f"{OWN.name}, unboxed fallback",
    lambda response: boxed.find_answer(response) or unboxed.find_unboxed(response),
    OWN.is_no_key,
    OWN.quick,
    OWN.module,
)
RELEASED = Rules(
    f"DATPO's release, SymPy {version('sympy')}", released.find_answer, lambda gold: False, released.quick, "released"
)


class Mathematics:
    """Grades in worker processes with limits of time and memory; safe from any thread.

    Args:
        pool: the workers; by default those all users of this process share, started when first needed.
        rules: the checker.
    """

    def __init__(self, pool: Pool | None = None, rules: Rules = OWN) -> None:
        self.rules = rules
        self._pool = pool
        self._known: dict[Pair, str] = {}

    @property
    def checker(self) -> str:
        """The name of the checker, with the version of what it stands on."""
        return self.rules.name

    def grade(self, problem: Problem, response: str) -> Verdict:
        """The verdict on one response."""
        return self.grade_all([(problem, response)])[0]

    def grade_all(self, pairs: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """The verdicts on many responses, in their order."""
        answers = [self.rules.find(response) for _, response in pairs]
        judged = self._judge(
            [(problem.answer, answer) for (problem, _), answer in zip(pairs, answers, strict=True) if answer]
        )
        verdicts = []
        for (problem, _), answer in zip(pairs, answers, strict=True):
            if answer:
                verdict = judged[problem.answer, answer]
            else:
                verdict = "bad_key" if self.rules.is_no_key(problem.answer) else "no_answer"
            verdicts.append(Verdict(verdict, answer))
        return verdicts

    def equivalent(self, problem: Problem, answer_a: str, answer_b: str) -> bool:
        """Whether two answers say the same, one of them taken as the key; an answer always equals itself."""
        if answer_a.strip() == answer_b.strip():
            return True
        return self._judge([(answer_a, answer_b)])[answer_a, answer_b] == "right"

    def _judge(self, pairs: Sequence[Pair]) -> dict[Pair, str]:
        """The verdict on each different (key, answer): at once if that takes no computing, else by the workers."""
        verdicts: dict[Pair, str] = {}
        hard: list[Pair] = []
        for pair in dict.fromkeys(pairs):
            verdict = self.rules.quick(*pair) or self._known.get(pair)
            if verdict is None:
                hard.append(pair)
            else:
                verdicts[pair] = verdict
        if hard:
            pool = self._pool or shared_pool(self.rules.module)
            judged = dict(zip(hard, pool.judge(hard), strict=True))
            verdicts.update(judged)
            self._remember(judged)
        return verdicts

    def _remember(self, judged: dict[Pair, str]) -> None:
        """Keep verdicts for the next time; a timeout may be the machine's fault and is tried again."""
        if len(self._known) > REMEMBERED:
            self._known = {}
        self._known.update(
            (pair, verdict)
            for pair, verdict in judged.items()
            if verdict != "timeout" and len(pair[1]) <= LONGEST_REMEMBERED
        )
