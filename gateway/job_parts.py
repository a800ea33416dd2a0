"""Jobs, put together: from settings to what fires them and what people may set up."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from core.alarm import Alarm, SchedulerAlarm
from core.engines.processes import Ledger
from core.firing import Firing
from core.job_asking import JobLimits
from core.job_tools import JobTools
from core.jobs import Jobs, Spine
from core.showing import Showing
from core.watches import Watches
from core.watching.commands import CommandLook
from core.watching.files import FileLook
from core.watching.looks import WORKSPACES, Looking
from core.watching.pages import PageLook
from gateway.choices import AgentJobs
from gateway.settings_table import Settings
from gateway.turn_parts import Basis


def job_limits(settings: Settings) -> JobLimits:
    return JobLimits(
        least=round(settings.min_interval * 1000),
        most=settings.jobs_per_person,
        catch_up=round(settings.catch_up * 1000),
        agents_ask=settings.agent_jobs is AgentJobs.ASK,
        watch_private=settings.watch_private,
    )


def zone_name(settings: Settings) -> str:
    """The zone of people who named none, by a name that can be stored.

    A machine's zone can be a file without a name; then its times cannot be told to anybody.
    """
    name = str(settings.timezone)
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"
    return name


def make_job_tools(basis: Basis, showing: Showing) -> JobTools:
    settings = basis.settings
    return JobTools(
        basis.store, basis.people, showing, basis.clock, job_limits(settings), zone_name(settings)
    )


def make_jobs(basis: Basis, showing: Showing, spine: Spine, alarm: Alarm | None) -> Jobs:
    firing = Firing(
        basis.store,
        basis.people,
        basis.here,
        showing,
        basis.clock,
        basis.defaults,
        job_limits(basis.settings).catch_up,
        zone_name(basis.settings),
    )
    return Jobs(firing, spine, alarm or SchedulerAlarm())


def make_looks(basis: Basis, ledger: Ledger) -> Looking:
    settings, home = basis.settings, basis.settings.home
    return Looking(
        home,
        basis.defaults.workspace,
        PageLook(private=settings.watch_private),
        CommandLook(home, ledger, sorted(settings.engine_env)),
        FileLook((home.resolve(),), ((home / WORKSPACES).resolve(),)),
    )


def make_watches(jobs: Jobs, spine: Spine, looks: Looking, alarm: Alarm | None) -> Watches:
    return Watches(jobs.firing, spine, jobs, looks, alarm or SchedulerAlarm())
