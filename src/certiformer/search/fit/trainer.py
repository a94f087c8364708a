"""The course of training of one component: which norms, how many steps, when to stop, and the exchange of peaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from certiformer.search.fit.architecture import Activation, Units, pack, present, room_for, unpack
from certiformer.search.fit.samples import Sample
from certiformer.search.fit.train import adam, descend, largest_errors
from certiformer.search.watching import show

# Starts trained at once, by room, for one input and for several: more units, fewer starts.
STARTS = {8: (12, 6), 16: (6, 4), 32: (4, 3), 64: (2, 2), 128: (1, 1)}
ADAM_STEPS = 60
# Steps of least squares before and after the hopeless cases are left (three times as many in one dimension, where they are
# cheap), and steps for every further norm.
FIRST_STEPS, SECOND_STEPS, POWER_STEPS = 80, 200, 30
POWERS = (4.0, 8.0, 16.0, 32.0, 64.0)
EXCHANGES = 3
# After the first and the second steps, an error beyond this many goals is not pursued: the norms after least squares gained
# factors of 1.1 to 2 on the targets tried, so 4 is on the safe side; 20 is a rule of thumb.
HOPELESS_FIRST, HOPELESS_SECOND = 20.0, 4.0
# Parameters of this size together cost as much as the goal itself, so that steep units that cancel each other stay rare.
LARGE_PARAMETERS = 300.0
# How far beside a network the starts of its sharpening lie, relative to each parameter.
BESIDE = 0.05
# An error of this many goals is taken to be zero up to rounding.
EXACT = 1e-6


@dataclass(frozen=True)
class Trial:
    """A trained network: its width and the largest error found, in units of the component's half range."""

    units: int
    error: float
    network: Units


@dataclass
class Trainer:
    """Trains networks of one component with one activation, and remembers the best of every width."""

    sample: Sample
    inputs: int
    activation: Activation
    goal: float
    seed: int
    deadline: float
    enough: float = 0.95  # a start stops at this share of the goal
    progress: Callable[[str], None] | None = None
    trials: dict[int, Trial] = field(default_factory=dict)
    history: list[tuple[int, float]] = field(default_factory=list)

    def starts_for(self, count: int) -> int:
        """How many networks of that width are trained at once."""
        return STARTS[room_for(count)][min(self.inputs, 2) - 1]

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def counted_points(self) -> tuple[np.ndarray, np.ndarray]:
        """The points of training that count, and the values there."""
        counted = self.sample.counted
        return self.sample.points[counted], self.sample.values[counted]

    def train(self, starts: Sequence[Units]) -> Trial:
        """The best network that training reaches from the starts, all of one width."""
        count, inputs = starts[0].count, self.inputs
        room = room_for(count)
        with jax.enable_x64(True):
            vectors = jnp.asarray(np.stack([pack(s, room) for s in starts]))
            free = jnp.asarray(np.tile(present(inputs, count, room), (len(starts), 1)))
            vectors = adam(self.activation, vectors, free, *self._sample()[:2], ADAM_STEPS)
            vectors = self._descend(vectors, free, 2.0, FIRST_STEPS)
            if self._errors(vectors).min() > HOPELESS_FIRST * self.goal or self.late:
                return self._remember(self._best(vectors), count)
            vectors = self._descend(vectors, free, 2.0, SECOND_STEPS if inputs > 1 else 3 * SECOND_STEPS)
            if self._errors(vectors).min() > HOPELESS_SECOND * self.goal or self.late:
                return self._remember(self._best(vectors), count)
            return self._finish(vectors, free, count)

    def thin(self, vectors: Sequence[np.ndarray], masks: Sequence[np.ndarray], count: int) -> Trial | None:
        """Of networks with some weights zero and fixed, ordered by how many, the thinnest that reaches the goal."""
        fill = self.starts_for(count) - len(vectors)
        with jax.enable_x64(True):
            stack = jnp.asarray(np.stack([*vectors, *[vectors[0]] * fill]))
            free = jnp.asarray(np.stack([*masks, *[masks[0]] * fill]))
            stack = self._descend(stack, free, 2.0, FIRST_STEPS)
            for power in POWERS:
                stack = self._descend(stack, free, power, POWER_STEPS)
            errors = self._errors(stack)
            for position in reversed(range(len(vectors))):
                if errors[position] <= self.goal:
                    trial = self._remember(stack[position], count)
                    if trial.error <= self.goal:
                        return trial
        return None

    def polished(self, found: Trial) -> Trial:
        """The network after least squares without penalty and without stopping at the goal, if that makes it exact.

        ReLU units meet a piecewise linear target to rounding. Otherwise the penalty stays: its weights are easier to prove.
        """
        if self.late:
            return found
        room, number = room_for(found.units), self.starts_for(found.units)
        vector = pack(found.network, room)
        with jax.enable_x64(True):
            vectors = jnp.asarray(np.tile(vector, (number, 1)))
            free = jnp.asarray(np.tile(present(self.inputs, found.units, room) * (vector != 0), (number, 1)))
            vectors = descend(self.activation, vectors, free, *self._sample(), 2.0, FIRST_STEPS, 0.0, 0.0)
            exact = self._remember(vectors[0], found.units)
            return exact if exact.error <= min(found.error, EXACT * self.goal) else found

    def sharpened(self, found: Trial) -> Trial:
        """The network trained on, without stopping at the goal: the same units and zeros, the smallest error found.

        All starts but the first begin a little beside it: the valleys next to one that just reached the goal are often
        deeper (seen on the suite: factors of 1.1 to 30).
        """
        if self.late or found.units == 0 or found.error <= EXACT * self.goal:
            return found
        room, number = room_for(found.units), self.starts_for(found.units)
        vector = pack(found.network, room)
        mask = present(self.inputs, found.units, room) * (vector != 0)
        noise = np.random.default_rng(self.seed).standard_normal((number, len(vector)))
        noise[0] = 0.0
        best = found
        with jax.enable_x64(True):
            vectors = jnp.asarray(vector * (1 + BESIDE * noise))
            free = jnp.asarray(np.tile(mask, (number, 1)))
            vectors = self._descend(vectors, free, 2.0, SECOND_STEPS, enough=0.0)
            for _ in range(EXCHANGES):
                for power in POWERS:
                    if self.late:
                        return best
                    vectors = self._descend(vectors, free, power, POWER_STEPS, enough=0.0)
                trial = self._remember(self._best(vectors), found.units)
                inside = self._errors(vectors).min()
                best = min(best, trial, key=lambda t: t.error)
                if trial.error < 1.005 * inside:
                    break
                self.sample.exchange(self._peaks)
        return best

    def _finish(self, vectors, free, count: int) -> Trial:
        """The norms with growing p, then peaks between the points moved into the sample."""
        for power in POWERS:
            vectors = self._descend(vectors, free, power, POWER_STEPS)
        best = self._remember(self._best(vectors), count)
        for _ in range(0 if self.late else EXCHANGES):
            inside = self._errors(vectors).min()
            # Either it is reached, or it is not even reached at the points, or no peak was missed.
            if best.error <= self.goal or inside > 1.2 * self.goal or best.error < 1.005 * inside:
                break
            self.sample.exchange(self._peaks)
            for power in POWERS[-3:]:
                vectors = self._descend(vectors, free, power, POWER_STEPS)
            trial = self._remember(self._best(vectors), count)
            best = min(best, trial, key=lambda t: t.error)
        return best

    def _sample(self):
        return self.sample.points, self.sample.values, self.sample.counted

    def _descend(self, vectors, free, power: float, steps: int, enough: float | None = None):
        penalty = (self.goal / LARGE_PARAMETERS) ** 2
        stop = (self.enough if enough is None else enough) * self.goal
        vectors = descend(self.activation, vectors, free, *self._sample(), power, steps, stop, penalty)
        show("training", lambda: (self, np.asarray(vectors), self._errors(vectors)))
        return vectors

    def _errors(self, vectors) -> Float[np.ndarray, " starts"]:
        return np.asarray(largest_errors(self.activation, vectors, *self._sample()[:2]))

    def _best(self, vectors):
        return vectors[int(np.argmin(self._errors(vectors)))]

    def _remember(self, vector, count: int) -> Trial:
        vector = np.asarray(vector)
        error, self._peaks = self.sample.worst(self.activation, vector)
        trial = Trial(count, error, unpack(vector, self.inputs, count))
        self.history.append((count, error))
        if self.progress is not None:
            self.progress(f"{count} {self.activation} units: sampled error {error / self.goal:.3g} of the goal")
        if count not in self.trials or error < self.trials[count].error:
            self.trials[count] = trial
        return trial
