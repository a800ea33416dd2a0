"""Who looks at the page: values only."""

from __future__ import annotations

from dataclasses import dataclass

from core.people import Role


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is signed in, as far as rights go; made anew for each request."""

    person: str  # web:ana@example.org, or the built-in owner
    name: str
    role: Role
    signin: str  # id of the stored sign-in
    linked: frozenset[str] = frozenset()  # chat identities that are the same human

    @property
    def admin(self) -> bool:
        return self.role is Role.ADMIN

    def is_me(self, person: str) -> bool:
        """Whether a person, as lanes, jobs and turns name them, is this one."""
        return person == self.person or person in self.linked
