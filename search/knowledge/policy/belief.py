"""The belief about one technique: the chances that it passes and matters, and its gain.

Three parts. The chance that a candidate of it passes the checks and the chance that a passing one
has an effect have beta distributions. The ln ratio of those that have one is normal with unknown
mean and variance, whose conjugate is normal-inverse-gamma. Evidence is added by its sufficient
statistics, so that a share of a body of evidence can be counted too.
"""

from dataclasses import dataclass, replace
from math import erf, exp, pi, sqrt
from random import Random

from kopt.search.knowledge.evidence import GAIN_SPREAD, SIGMAS
from kopt.search.knowledge.records import Evidence

BOLDNESS = 0.5
"""How far drawn chances and means lie from expected ones, in posterior standard deviations.

1 is Thompson sampling as it is. It pays for what it learns by many tries, and a search has few;
0 tries nothing for the sake of knowing.
"""


@dataclass(frozen=True)
class Belief:
    """Parameters of the distributions; without arguments what is believed of any technique."""

    mean: float = -0.05
    """Expected ln ratio, given an effect: most changes without a recommendation lose."""
    weight: float = 0.5
    """Tries that the mean rests on (kappa): techniques differ more than kernels do, by a standard
    deviation of GAIN_SPREAD / sqrt(weight) = 0.14."""
    alpha: float = 2.0
    beta: float = 2.0 * GAIN_SPREAD**2
    """Shape and rate of 1 / variance, as after four tries: two gains that happen to agree do not
    make a narrow interval."""
    passed: float = 1.4
    failed: float = 0.6
    """Beta parameters of the chance to pass: seven of ten, as after two tries."""
    effects: float = 0.2
    nulls: float = 0.8
    """Beta parameters of the chance of an effect: one of five, as after one try. In a state a
    technique matters or it does not, and a few tries tell."""

    @property
    def works(self) -> float:
        """Return the expected chance that a try passes the checks and has an effect, 0 to 1."""
        return self._passes * self.effects / (self.effects + self.nulls)

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

    @property
    def _passes(self) -> float:
        return self.passed / (self.passed + self.failed)

    def after(self, evidence: Evidence, share: float = 1.0, factor: float = 1.0) -> "Belief":
        """Return the belief after the effects and gains of `evidence`.

        Args:
            evidence: Sufficient statistics of what was tried.
            share: What each of its tries counts, 0 to 1.
            factor: What its gains are multiplied by, because they were found elsewhere.

        Source:
            Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007, section 3;
            with a weight in place of the count.
        """
        more = share * evidence.weight
        weight = self.weight + more
        apart = factor * evidence.mean - self.mean
        deviations = share * factor**2 * evidence.m2 + apart**2 * self.weight * more / weight
        return replace(
            self,
            mean=self.mean + apart * more / weight,
            weight=weight,
            alpha=self.alpha + more / 2,
            beta=self.beta + deviations / 2,
            effects=self.effects + share * (evidence.gained + evidence.lost),
            nulls=self.nulls + share * evidence.within_noise,
        )

    def after_checks(self, evidence: Evidence, share: float = 1.0) -> "Belief":
        """Return the belief after what passed the checks and what failed."""
        return replace(
            self,
            passed=self.passed + share * (evidence.tries - evidence.failed),
            failed=self.failed + share * evidence.failed,
        )

    def expecting(self, gain: float, weight: float) -> "Belief":
        """Return the belief when `gain` is expected with the weight of so many tries.

        It says nothing of spread: only tries do.
        """
        total = self.weight + weight
        mean = self.mean + (gain - self.mean) * weight / total
        return replace(self, mean=mean, weight=total, effects=self.effects + weight)

    def shifted(self, extra: float) -> "Belief":
        """Return the belief with `extra` added to the expected gain."""
        return replace(self, mean=self.mean + extra)

    def drawn_value(self, rng: Random) -> float:
        """Return the value of one try in a world drawn from the belief, ln, >= 0.

        The value is the chance of an effect times the mean of max(gain, 0): a program that became
        slower is not kept, so that only gains count. What of the uncertainty of the mean is not
        drawn belongs to the gain: something little known may turn out well.

        Args:
            rng: Draws the mean, then the chance of an effect.

        Source:
            Russo et al., "A tutorial on Thompson sampling", 2018; Jones, Schonlau, Welch,
            "Efficient global optimization", 1998, for the mean of max(gain, 0).
        """
        mean, chance = self._drawn(rng)
        variance = self.beta / self.alpha
        unknown = variance / self.weight
        spread = sqrt(variance + (1 - BOLDNESS**2) * unknown)
        return self._passes * chance * positive_part(mean, spread)

    def drawn_gain(self, rng: Random) -> float:
        """Return what one try changes in such a world, ln: negative where it is slower."""
        mean, chance = self._drawn(rng)
        return self._passes * chance * mean

    def _drawn(self, rng: Random) -> tuple[float, float]:
        """Return the mean gain of those that have an effect, and the chance of one."""
        unknown = self.beta / self.alpha / self.weight
        mean = rng.gauss(self.mean, BOLDNESS * sqrt(unknown))
        narrower = 1 / BOLDNESS**2  # as many times the tries: that much less variance
        return mean, rng.betavariate(narrower * self.effects, narrower * self.nulls)


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
    z = SIGMAS
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
