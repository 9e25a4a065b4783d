"""Logs from data sets that other people recorded: nuScenes, KITTI tracking, FieldSAFE."""

from verifier.closedloop.readers.fieldsafe import fieldsafe_logs
from verifier.closedloop.readers.from_sets import kitti_tracking_logs, nuscenes_logs

__all__ = ["fieldsafe_logs", "kitti_tracking_logs", "nuscenes_logs"]
