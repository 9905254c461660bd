"""Data in, a plot and a table out.

    PYTHONPATH=clients/python python3 examples/analysis.py"""
import cordon

CSV = "city,year,people\nA,2000,10\nA,2020,14\nB,2000,20\nB,2020,19\n"
CODE = """
import pandas as pd
import matplotlib.pyplot as plt
df = pd.read_csv('people.csv')
df.pivot(index='year', columns='city', values='people').plot()
plt.show()
df.groupby('city').people.agg(['min', 'max']).reset_index().to_dict('records')
"""

with cordon.Session("python", policy={"timeout_ms": 60000}) as s:
    s.files.write("people.csv", CSV)
    r = s.execute(CODE, check=True)
    print(r.value)
    print([(o.mime, len(o.data) > 1000) for o in r.outputs if o.mime == "image/png"])
