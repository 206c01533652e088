"""What people write in files, checked and turned into records."""

from advisor.specs.study_file import load_study_file

__all__ = ["load_study_file"]
