"""Tables: IDV files and TBF segments."""

import numpy as np
import turboloader as tl


def main() -> None:
    columns = tl.Columns(
        {"age": "float32", "name": None}, label="class", features=["a", "b"], neighbors=[5, 3]
    )
    for batch in tl.DataLoader("table.idv", 1024, columns=columns, shuffle=True):
        print(batch["features"].shape, batch["label"].tolist(), batch["age"])
    file = tl.IdvFile("table.idv")
    print(len(file), file)
    segment = tl.TbfSegment("nodes.tbf")
    print(segment, np.asarray([1.0]))
