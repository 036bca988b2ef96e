"""Ways to draw from p(θ | y), one a file.

exact, hmc, augmentation       what `auto` takes
gibbs                          Bernstein & Sheldon 2018, Algorithms 1, 2 and 3
gibbs_regression               Bernstein & Sheldon 2019, Gibbs-SS
individual                     the same, MCMC-Ind
"""
