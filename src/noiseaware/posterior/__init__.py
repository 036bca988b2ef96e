"""From a release to the posterior that it supports, and what people ask of a posterior."""
