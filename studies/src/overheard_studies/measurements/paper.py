"""All measurements that repeat no paper, under the name "overheard"."""

from overheard_studies.measurements.adapter_leaks import adapter_leaks
from overheard_studies.measurements.audits import (
    adapters,
    identity,
    label_shares,
    membership,
    shift,
    whitened_layers,
    words,
)
from overheard_studies.measurements.calibration import calibration
from overheard_studies.measurements.client_epsilon import client_epsilon
from overheard_studies.measurements.crafted_canaries import crafted_canaries
from overheard_studies.measurements.doubts import label_share_doubts
from overheard_studies.measurements.equal_views import equal_views, mm_aug
from overheard_studies.measurements.from_sums.curves import sums_curves
from overheard_studies.measurements.from_sums.defenses import sums_defenses
from overheard_studies.measurements.from_sums.deviations import sums_deviations
from overheard_studies.measurements.from_sums.federations import label_shares_from_sums
from overheard_studies.measurements.from_sums.nulls import sums_nulls
from overheard_studies.measurements.interval_coverage import label_share_intervals
from overheard_studies.measurements.membership_worlds import membership_worlds
from overheard_studies.measurements.record_sums import records_from_sums
from overheard_studies.measurements.shift_alarms import shift_alarms
from overheard_studies.measurements.shift_sets import shift_sets
from overheard_studies.measurements.sources import source_inference
from overheard_studies.measurements.whispers_setting import whispers_setting
from overheard_studies.measurements.whitened import whitened
from overheard_studies.measurements.whitened_grid import whitened_grid
from overheard_studies.study import Paper

PAPER = Paper(
    "overheard",
    "What Overheard's own pages state",
    "Overheard",
    lambda: (
        calibration(),
        membership(),
        source_inference(),
        membership_worlds(),
        whitened(),
        whitened_grid(),
        whitened_layers(),
        words(),
        identity(),
        client_epsilon(),
        crafted_canaries(),
        equal_views(),
        mm_aug(),
        adapters(),
        adapter_leaks(),
        label_shares(),
        label_share_doubts(),
        label_share_intervals(),
        label_shares_from_sums(),
        records_from_sums(),
        sums_curves(),
        sums_defenses(),
        sums_deviations(),
        sums_nulls(),
        shift(),
        shift_alarms(),
        shift_sets(),
        whispers_setting(),
    ),
)
