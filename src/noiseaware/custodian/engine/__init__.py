"""Engines that hold tables: files, data frames, PostgreSQL and Spark."""
