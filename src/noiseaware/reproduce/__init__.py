"""The papers' figures, one a file: each computes its numbers, writes them as CSV and draws them.

figure1        calibration and utility of the Gibbs samplers (Bernstein & Sheldon 2018, figure 1)
figure2        their convergence (figure 2, in the supplement)
rare_events    not in the paper: where its sampler fails and the exact one does not
figure3        linear regression on simulated tables (Bernstein & Sheldon 2019, figure 3)
figure4        its predictions on real data (the same, figure 4)
"""
