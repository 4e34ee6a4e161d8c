# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # A system of which only hardware data are known
# What limits md-workbench on 4 nodes that share one server, and what would a second server do?

# %%
import iocast

load = {"datasets": 1, "iterations": 50, "objects": 50}
now = iocast.predict("queue", 4, 64, workload="md-workbench", settings=load, solver="analytic")
print("The rate is limited by a", now.document()["limited_by"])
# -> The rate is limited by a station

# %%
two = {"stations.server.servers": 2}
more = iocast.predict("queue", 4, 64, workload="md-workbench", settings=load, solver="analytic", edits=two)
times = more.phases["benchmark"].rate.value / now.phases["benchmark"].rate.value
print(f"{times:.1f} times the rate with two servers")
# -> 2.0 times the rate with two servers

# %% [markdown]
# Rows of numbers in SI units go into any table.

# %%
slowest = max((row for row in more.rows() if row["quantity"].endswith(".q99")), key=lambda row: row["value"])
print(slowest["quantity"], f"{1e3 * slowest['value']:.1f} ms")
# -> create.q99 4.7 ms
