# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # From a table of measurements to a forecast
# The rates of mdtest on 1 to 8 nodes of Cirrus' Lustre are a table. What would 16 nodes do?

# %%
import iocast

runs = iocast.import_results("examples/first-forecast/cirrus.csv")
print(len(runs), "runs of", ", ".join(sorted({run.phases[0].name for run in runs})))
# -> 4 runs of file-create

# %%
fitted = iocast.calibrate(runs)
forecast = iocast.predict(fitted, nodes=16)
for row in forecast.rows():
    print(f"{row['phase']}: {row['value']:.0f}, {row['low']:.0f} to {row['high']:.0f} operations a second")
# -> file-create: 59928, 36774 to 116048 operations a second

# %% [markdown]
# How far off would a forecast of 8 nodes have been, without the measurement there?

# %%
small = iocast.calibrate([place for place, run in zip(runs.directories, runs) if (run.placement.nodes or 0) < 8])
check = iocast.validate(small, [place for place, run in zip(runs.directories, runs) if run.placement.nodes == 8])
for row in check.rows():
    print(f"{row['point']}, {row['quantity']}: {100 * row['error']:+.0f} %, inside its interval: {row['inside']}")
# -> N=8x36 T=0, rate: +21 %, inside its interval: True
