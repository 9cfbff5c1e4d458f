"""Scores that evaluate predicted answers, boxes, trees, entities, label sets and text."""
