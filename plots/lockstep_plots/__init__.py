"""Figures and one report page from the records that the other rooms write."""
