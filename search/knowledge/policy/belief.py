"""What is believed of one technique: how likely it has an effect, and how large that is.

Two parts. The chance of an effect has a beta distribution; the ln ratio of those that have one is
normal with unknown mean and variance, whose conjugate is normal-inverse-gamma. Evidence is added
by its sufficient statistics, so that a share of a body of evidence can be counted too.
"""

from dataclasses import dataclass, replace
from math import erf, exp, pi, sqrt
from random import Random

from kopt.search.knowledge.records import Evidence

from .update import GAIN_SPREAD

_SIGMAS = 1.96


@dataclass(frozen=True)
class Belief:
    """Parameters of both distributions; without arguments what is believed of any technique.

    No gain is expected, with the weight of half a try. The variance is GAIN_SPREAD squared with
    the weight of four tries (2 x alpha): two chance gains that agree do not make a narrow interval.
    A chance of an effect of one half counts as two tries.
    """

    mean: float = 0.0
    """Expected ln ratio, given an effect."""
    weight: float = 0.5
    """Tries that the mean rests on (kappa)."""
    alpha: float = 2.0
    beta: float = 2.0 * GAIN_SPREAD**2
    """Shape and rate of 1 / variance."""
    effects: float = 1.0
    others: float = 1.0
    """Parameters of the beta distribution: with an effect, without or failed."""

    @property
    def works(self) -> float:
        """Return the expected chance that a try passes the checks and has an effect, 0 to 1."""
        return self.effects / (self.effects + self.others)

    @property
    def sd(self) -> float:
        """Return the standard deviation of the mean: how well the gain is known, ln."""
        return sqrt(self.beta / ((self.alpha - 1) * self.weight))

    @property
    def interval(self) -> tuple[float, float]:
        """Return where the next gain lies with 95 %, given an effect: Student's t, ln."""
        scale = sqrt(self.beta * (self.weight + 1) / (self.alpha * self.weight))
        half = t_quantile(2 * self.alpha) * scale
        return self.mean - half, self.mean + half

    def after(self, evidence: Evidence, share: float = 1.0, factor: float = 1.0) -> "Belief":
        """Return the belief after `evidence`.

        Args:
            evidence: Sufficient statistics of what was tried.
            share: What each of its tries counts, 0 to 1.
            factor: What its gains are multiplied by, because they were found elsewhere.

        Source:
            Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007, section 3;
            with a weight in place of the count.
        """
        effects = evidence.gained + evidence.lost
        more = share * evidence.weight
        weight = self.weight + more
        apart = factor * evidence.mean - self.mean
        deviations = share * factor**2 * evidence.m2 + apart**2 * self.weight * more / weight
        return Belief(
            mean=self.mean + apart * more / weight,
            weight=weight,
            alpha=self.alpha + more / 2,
            beta=self.beta + deviations / 2,
            effects=self.effects + share * effects,
            others=self.others + share * (evidence.tries - effects),
        )

    def expecting(self, gain: float, weight: float) -> "Belief":
        """Return the belief when `gain` is expected with the weight of so many tries.

        What is expected says nothing of spread and chance: only tries do.
        """
        total = self.weight + weight
        return replace(self, mean=self.mean + (gain - self.mean) * weight / total, weight=total)

    def shifted(self, extra: float) -> "Belief":
        """Return the belief with `extra` added to the expected gain."""
        return replace(self, mean=self.mean + extra)

    def drawn_value(self, rng: Random) -> float:
        """Return the value of one try in a world drawn from the belief (Thompson), ln, >= 0.

        The chance of an effect times the mean of max(gain, 0): a program that became slower is
        not kept, so that only gains count.

        Args:
            rng: Draws chance, variance and mean, in this order.

        Source:
            Russo et al., "A tutorial on Thompson sampling", 2018, chapters 3 and 4.
        """
        chance = rng.betavariate(self.effects, self.others)
        variance = self.beta / rng.gammavariate(self.alpha, 1.0)
        mean = rng.gauss(self.mean, sqrt(variance / self.weight))
        return chance * positive_part(mean, sqrt(variance))

    @property
    def value(self) -> float:
        """Return the value of one try as far as is known, without a draw, ln."""
        return self.works * positive_part(self.mean, sqrt(self.beta / self.alpha))


def positive_part(mean: float, sd: float) -> float:
    """Return the mean of max(x, 0) for normal x; sd > 0."""
    z = mean / sd
    density = exp(-z * z / 2) / sqrt(2 * pi)
    return mean * (1 + erf(z / sqrt(2))) / 2 + sd * density


def t_quantile(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t, within 0.3 % from 4 degrees of freedom on.

    Source:
        Abramowitz, Stegun, "Handbook of Mathematical Functions", 26.7.5: the expansion about the
        normal quantile.
    """
    z = _SIGMAS
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
