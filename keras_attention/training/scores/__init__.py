"""Scores of tasks: answers, boxes, trees, entities, label sets and texts."""
